"""The nodes of a Markdown tree."""

from typing import Literal

from hermes.types.value import Value

Align = Literal["", "left", "center", "right"]


class Text(Value, tag=True):
    text: str


class Code(Value, tag=True):
    text: str


class Strong(Value, tag=True):
    children: "Inlines"


class Emphasis(Value, tag=True):
    children: "Inlines"


class Strikethrough(Value, tag=True):
    children: "Inlines"


class Link(Value, tag=True):
    url: str
    children: "Inlines"


class Image(Value, tag=True):
    url: str
    text: str = ""
    """The text to show where the picture cannot be shown."""


class Break(Value, tag=True):
    hard: bool = False
    """Whether the author wrote a hard break, and not just a new line in the source."""


Inline = Text | Code | Strong | Emphasis | Strikethrough | Link | Image | Break
Inlines = tuple[Inline, ...]


class Paragraph(Value, tag=True):
    children: Inlines


class Heading(Value, tag=True):
    level: int
    children: Inlines


class Fence(Value, tag=True):
    text: str
    """The code without its last newline."""
    info: str = ""


class List(Value, tag=True):
    items: tuple["Document", ...]
    start: int | None = None
    """The first number of a numbered list; None for a bulleted list."""
    tight: bool = True
    """Whether the items have no blank lines between them."""


class Quote(Value, tag=True):
    children: "Document"


class Table(Value, tag=True):
    aligns: tuple[Align, ...]
    header: tuple[Inlines, ...]
    """The cells of the header. It is empty if the table continues a table from an earlier part of
    the message."""
    rows: tuple[tuple[Inlines, ...], ...] = ()


class Rule(Value, tag=True):
    pass


Block = Paragraph | Heading | Fence | List | Quote | Table | Rule
Document = tuple[Block, ...]
