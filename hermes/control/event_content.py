"""Reads events from entry points: the messages that they add to a conversation, and the text with
which they answer a question."""

from collections.abc import Sequence

from msgspec.structs import replace

from hermes.text.commands import unescaped
from hermes.types.identity import parse_call_id
from hermes.types.messages import (
    Asked,
    Attachment,
    Message,
    MessageEvent,
    Pressed,
    Said,
    UserMessage,
)


def new_messages(event: MessageEvent) -> tuple[Message, ...]:
    """Returns the messages that the event adds to the conversation."""
    match event.body:
        case Said(text=text, attachments=attachments):
            shared = event.source.chat_kind != "private"
            sender = event.source.user_name if shared else None
            # A text that begins with two slashes is not a command. The first slash is removed.
            said = unescaped(text)
            return (UserMessage(text=said, sender=sender, attachments=attachments),)
        case Asked(stateless=False, messages=(*before, UserMessage() as last)):
            return (*before, replace(last, text=unescaped(last.text)))
        case Asked(messages=messages):
            return messages
        case _:
            return ()


EDITED = (
    "[I have edited my message while you worked on it. The effects of your earlier steps remain."
    " This is the new text:]"
)
"""The first line of an edited message. It tells the model why its work was stopped."""


def with_text(
    event: MessageEvent, text: str, attachments: tuple[Attachment, ...] | None = None
) -> MessageEvent:
    """Returns a copy of the event with another text. The event must be a chat message, or a request
    with a session. If `attachments` is None, the attachments stay the same."""
    match event.body:
        case Said() as said:
            files = said.attachments if attachments is None else attachments
            return replace(event, body=replace(said, text=text, attachments=files))
        case Asked(messages=(*before, UserMessage() as last)) as asked:
            files = last.attachments if attachments is None else attachments
            changed = replace(last, text=text, attachments=files)
            return replace(event, body=replace(asked, messages=(*before, changed)))
        case _:
            raise AssertionError("only a message with a text can get another text")


def marked_as_edited(event: MessageEvent) -> MessageEvent:
    """Returns the event of an edited message, with a note that tells the model about the edit."""
    assert isinstance(event.body, Said), "only chat messages can be edited"
    return with_text(event, f"{EDITED}\n{unescaped(event.body.text)}")


def answer_text(event: MessageEvent) -> str | None:
    """Returns the text that can answer an open question; None if the event can't answer a
    question."""
    match event.body:
        case Said(text=text) | Asked(stateless=False, messages=(*_, UserMessage(text=text))):
            # The answer becomes the result of a tool call. Results have no attachments, so the text
            # names the files.
            unseen = [
                f"{one.label[:-1]}: came with the answer, not shown]" for one in files_of(event)
            ]
            return "\n".join([text, *unseen])
        case Pressed(choice=choice):
            return choice
        case _:
            return None


def files_of(event: MessageEvent) -> list[Attachment]:
    """Returns the attachments that the event adds to the conversation."""
    messages = new_messages(event)
    return [file for one in messages if isinstance(one, UserMessage) for file in one.attachments]


def has_files(messages: Sequence[Message]) -> bool:
    """Returns whether any of the messages has an attachment."""
    return any(isinstance(one, UserMessage) and one.attachments for one in messages)


def first_step(asked: Asked) -> int:
    """Returns the number of the step in which the model is first called. If the request contains
    results of tool calls, this is the step after these calls. Otherwise it is 0."""
    place = parse_call_id(asked.results[0].call) if asked.results else None
    return place.step + 1 if place else 0
