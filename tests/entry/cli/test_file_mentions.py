"""A file that a message mentions with @ is attached."""

import os
import sys
from pathlib import Path

import pytest

from hermes.entry.cli.file_mentions import (
    LARGEST_MEDIA,
    LARGEST_TEXT,
    LARGEST_TEXTS,
    MOST_MENTIONS,
    FileNotAttached,
    read_mentions,
)

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
MILK = "\n\n[file todo.txt]\nmilk\n\n[end of file todo.txt]"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "todo.txt").write_text("milk\n")
    (tmp_path / "my list.txt").write_text("bread")
    (tmp_path / "cat.png").write_bytes(PNG)
    (tmp_path / "Makefile").write_text("all:\n")
    (tmp_path / "src").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    "message",
    [
        "what is in @todo.txt",
        "@todo.txt: what is it?",
        "read @todo.txt, please (or @todo.txt)",
        "see @./todo.txt.",
        'and @"todo.txt"?',
    ],
)
def test_a_text_file_is_added_to_the_message_once(folder: Path, message: str) -> None:
    read = read_mentions(message, folder)
    assert read.text == message + MILK
    assert read.media == ()


def test_a_file_name_with_a_space_can_be_quoted(folder: Path) -> None:
    read = read_mentions('buy @"my list.txt"', folder)
    assert read.text.endswith("[file my list.txt]\nbread\n[end of file my list.txt]")
    assert read.names == ("my list.txt",)


def test_an_image_is_an_attachment(folder: Path) -> None:
    (file,) = read_mentions("who is @cat.png", folder).media
    assert (file.attachment.kind, file.attachment.media_type) == ("image", "image/png")
    assert (file.attachment.name, file.attachment.size) == ("cat.png", len(PNG))
    assert file.data == PNG


def test_a_file_elsewhere_has_an_absolute_path(folder: Path) -> None:
    assert read_mentions(f"@{folder}/todo.txt", Path("/")).text.endswith(MILK)


@pytest.mark.parametrize(
    "message",
    [
        "@alice said hello",
        "mail me at bob@todo.txt",
        "@property\ndef f(self): ...",
        '@app.route("/x")',
        "upgrade @angular/core",
        "@@ -1,2 +1,2 @@",
        "@@count = 1",
        "@ home",
        "@~nobody-of-that-name/x",
        f"@{'x' * 5000}",
        "@a\0b",
    ],
)
def test_other_words_with_an_at_sign_are_not_changed(folder: Path, message: str) -> None:
    read = read_mentions(message, folder)
    assert (read.text, read.names) == (message, ())


def test_a_word_with_two_at_signs_is_not_a_file(folder: Path) -> None:
    assert read_mentions("@@todo.txt and @@nope.txt.", folder).text == "@todo.txt and @nope.txt."
    assert read_mentions("@@todo.txt, @todo.txt", folder).text == "@todo.txt, @todo.txt" + MILK


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("@nope.txt", r"There is no file 'nope.txt'. Type @@nope.txt if"),
        ("@src/nope", r"There is no file 'src/nope'"),
        ("@/nope", r"There is no file '/nope'"),
        ("@src", "'src' is a folder"),
        ("@pipe", "'pipe' is not a regular file"),
        ("@data.bin", "'data.bin' is neither UTF-8 text nor an image"),
        ("@latin.txt", "'latin.txt' is neither UTF-8 text"),
        ("@huge.bin", "'huge.bin' is neither UTF-8 text"),
        ("@huge.log", f"'huge.log' is too large: at most {LARGEST_TEXT:,} bytes"),
        ("@huge.png", f"'huge.png' is too large: at most {LARGEST_MEDIA:,} bytes"),
    ],
)
def test_a_file_that_cannot_be_attached_is_an_error_that_says_why(
    folder: Path, message: str, why: str
) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "data.bin").write_bytes(b"a\0b")
    (folder / "latin.txt").write_bytes("für".encode("latin-1"))
    (folder / "huge.bin").write_bytes(b"\0" * (LARGEST_TEXT + 1))
    (folder / "huge.log").write_bytes(b"x" * (LARGEST_TEXT + 1))
    (folder / "huge.png").write_bytes(PNG + b"x" * LARGEST_MEDIA)
    with pytest.raises(FileNotAttached, match=why):
        read_mentions(message, folder)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such a file")
def test_a_file_that_can_not_be_read_is_an_error(folder: Path) -> None:
    # This file can be opened, but a read at its beginning fails even for root.
    with pytest.raises(FileNotAttached, match=r"'/proc/self/mem' can't be read: Input/output"):
        read_mentions("@/proc/self/mem", folder)


def test_the_total_size_of_the_files_is_limited(folder: Path) -> None:
    names = [f"part{number}.txt" for number in range(MOST_MENTIONS + 1)]
    for name in names:
        (folder / name).write_text("x" * (LARGEST_TEXT - 1))
    with pytest.raises(FileNotAttached, match=f"at most {LARGEST_TEXTS:,} bytes"):
        read_mentions(" ".join(f"@{name}" for name in names[:3]), folder)
    with pytest.raises(FileNotAttached, match=f"at most {MOST_MENTIONS} files"):
        read_mentions(" ".join(f"@{name}" for name in names), folder)


def test_the_values_in_a_file_of_secrets_are_masked(folder: Path) -> None:
    (folder / ".env").write_text("TOKEN=hunter2\n")
    text = read_mentions("@.env", folder).text
    assert "TOKEN=" in text
    assert "hunter2" not in text
