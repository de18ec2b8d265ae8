"""The type of an attached file is known by its first bytes."""

import pytest

from hermes.text.file_types import framed, kind_of, media_type_of
from hermes.types.messages import AttachmentKind


@pytest.mark.parametrize(
    ("data", "media_type", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n...", "image/png", "image"),
        (b"RIFF\0\0\0\0WAVE", "audio/wav", "audio"),
        (b"%PDF-1.7", "application/pdf", "file"),
    ],
)
def test_the_type_is_known_by_the_first_bytes(
    data: bytes, media_type: str, kind: AttachmentKind
) -> None:
    assert media_type_of(data) == media_type
    assert kind_of(media_type) == kind


@pytest.mark.parametrize("data", [b"", b"hello", b"\x7fELF\0", b"\xff\xfeh\0i\0"])
def test_other_content_has_no_known_type(data: bytes) -> None:
    assert media_type_of(data) is None


def test_a_text_file_is_enclosed_with_its_name() -> None:
    assert framed("milk\n", "todo.txt") == "[file todo.txt]\nmilk\n\n[end of file todo.txt]"
    assert framed("milk", None) == "[file]\nmilk\n[end of file]"
