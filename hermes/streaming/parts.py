"""Splits a delivery into messages that the platform accepts."""

from collections.abc import Iterator

from msgspec.structs import replace

from hermes.streaming.fold import SEGMENT_SEPARATOR
from hermes.text.markdown import parse, print_plain
from hermes.text.slices import visible
from hermes.text.split import split
from hermes.types.messages import Attachment, Choices, Content
from hermes.types.nodes import Document, Paragraph, Text
from hermes.types.platforms import PlatformAdapter
from hermes.types.value import Value


class MessagePart(Value):
    """One message of a delivery, before it is rendered."""

    tree: Document = ()
    attachment: Attachment | None = None
    choices: Choices | None = None
    plain: bool = False
    """Whether the message is sent without formatting."""


def parts_of(content: Content, adapter: PlatformAdapter) -> list[MessagePart]:
    """Returns the messages that show the content on the platform: first the text, then each
    question with buttons, then each attachment.

    The same content always gives the same messages.
    """
    limits = adapter.limits
    asked = [one for one in content.choices if 0 < len(one.labels) <= limits.buttons]
    texts = [content.text, *(one.text for one in content.choices if one not in asked)]
    if not limits.attachments:
        texts += [f"({one.file_name} can't be sent here.)" for one in content.attachments]
    parts = list(_messages(SEGMENT_SEPARATOR.join(filter(None, texts)), adapter))
    for choices in asked:
        shown = SEGMENT_SEPARATOR.join(filter(None, (choices.prompt.strip() or "?", choices.hint)))
        *before, last = _messages(shown, adapter)
        open_ones = None if choices.outcome else choices
        parts += [*before, MessagePart(tree=last.tree, choices=open_ones)]
    if limits.attachments:
        parts += [MessagePart(attachment=one) for one in content.attachments]
    return parts


def plain_parts(part: MessagePart, adapter: PlatformAdapter) -> list[MessagePart]:
    """Returns the messages that show the part without formatting. If the part is a question, its
    buttons are below the last message.

    The length of a text is measured in bytes, because this fits every platform: a text never has
    more characters than bytes.
    """
    trees = split(part.tree, adapter.limits.text, print_plain, _bytes_of)
    *before, last = [MessagePart(tree=tree, plain=True) for tree in trees]
    return [*before, replace(last, choices=part.choices)]


def tree_of(text: str) -> Document:
    """Parses the text as Markdown, or as plain text if the Markdown would have no visible text."""
    tree = parse(text)
    if text.strip() and not visible(tree).strip():
        return (Paragraph(children=(Text(text=text.strip()),)),)
    return tree


def _messages(text: str, adapter: PlatformAdapter) -> Iterator[MessagePart]:
    for tree in split(tree_of(text), adapter.limits.text, adapter.render, adapter.measure):
        yield MessagePart(tree=tree)


def _bytes_of(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
