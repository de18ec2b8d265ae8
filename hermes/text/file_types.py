"""Recognizes the types of attached files, and formats a text file as a part of a message."""

import re

from hermes.types.messages import AttachmentKind

BEGINNINGS = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
    "audio/wav": re.compile(rb"RIFF....WAVE", re.DOTALL),
    "audio/mpeg": re.compile(rb"ID3|\xff[\xe2-\xff]"),
    "application/pdf": re.compile(rb"%PDF-"),
}
"""Patterns for the beginning of a file, by media type."""
_UTF16 = b"\xff\xfe"
"""The byte order mark of a text in UTF-16. It must be checked first, because the pattern for MP3
files also matches it."""


def media_type_of(data: bytes) -> str | None:
    """Returns the media type of an image, a sound or a PDF file, or None for any other content."""
    if data.startswith(_UTF16):
        return None
    return next((name for name, beginning in BEGINNINGS.items() if beginning.match(data)), None)


def kind_of(media_type: str) -> AttachmentKind:
    """Returns the kind of attachment for a media type."""
    match media_type.partition("/")[0]:
        case "image":
            return "image"
        case "audio":
            return "audio"
        case _:
            return "file"


def framed(text: str, name: str | None) -> str:
    """Returns the content of a text file as a part of a message, between lines that name the
    file."""
    called = f" {name}" if name else ""
    return f"[file{called}]\n{text}\n[end of file{called}]"
