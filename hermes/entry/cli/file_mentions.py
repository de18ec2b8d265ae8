"""Finds the files that a message mentions with @, and reads them."""

import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes.text.file_types import framed, kind_of, media_type_of
from hermes.text.secret_files import NOTE, is_secret_file, masked_values
from hermes.types.errors import HermesError
from hermes.types.messages import Attachment
from hermes.types.value import Value

MOST_MENTIONS = 20
"""Maximum number of files in one message."""
LARGEST_TEXT, LARGEST_TEXTS = 200_000, 400_000
"""Maximum number of bytes of one text file (first number), and of all text files in a message
(second number)."""
LARGEST_MEDIA, LARGEST_MEDIAS = 10_000_000, 20_000_000
"""Maximum number of bytes of one binary file, such as an image (first number), and of all binary
files in a message (second number)."""
_MENTION = re.compile(r'(?<!\S)@(?P<escaped>@?)(?:"(?P<quoted>[^"\n]+)"|(?P<plain>[^\s@"]\S*))')
_PUNCTUATION = ".,;:!?)]}'\"`…"
"""Characters that may follow a mention."""
_FILE_NAME = re.compile(r"[^\s()\[\]{}<>=,;|&$*'\"`]+\.[A-Za-z0-9]{1,5}")
"""Matches a word that ends like the name of a file."""


class FileNotAttached(HermesError):
    """Raised if a message mentions a file that can't be sent with the message."""

    code = "file_not_attached"
    status = 400


class MediaFile(Value):
    """An image, a sound or a PDF file, which is sent together with the text."""

    attachment: Attachment
    """The attachment without its path. The media cache determines the path."""
    data: bytes


class MessageFiles(Value):
    """A message with the files that it mentions."""

    text: str
    """The message, followed by the content of its text files."""
    media: tuple[MediaFile, ...] = ()
    names: tuple[str, ...] = ()
    """The files in the order in which the text mentions them, named as the person wrote them."""


class _Mention(Value):
    start: int
    end: int
    name: str
    """The path as the person wrote it."""
    escaped: bool
    path: Path
    mode: int | None
    """The file mode; None if there is no such file."""


def read_mentions(text: str, folder: Path) -> MessageFiles:
    """Returns the message with its files. If a file can't be attached, raises a FileNotAttached
    that says why.

    Paths are relative to the folder. A word such as `@alice` that names no file stays unchanged.
    `@@name` is replaced by the text `@name`, and attaches no file. This function blocks.
    """
    mentions = list(_mentions(text, folder))
    files = {one.path: one for one in mentions if not one.escaped}
    if len(files) > MOST_MENTIONS:
        raise FileNotAttached(f"A message can have at most {MOST_MENTIONS} files.")
    texts: list[str] = []
    media: list[MediaFile] = []
    for mention in files.values():
        match _content(mention, _read(mention)):
            case str(content):
                texts.append(content)
            case file:
                media.append(file)
    _check_total("text", sum(map(len, texts)), LARGEST_TEXTS)
    _check_total("other", sum(len(one.data) for one in media), LARGEST_MEDIAS)
    return MessageFiles(
        text="\n\n".join([_unescaped(text, mentions), *texts]),
        media=tuple(media),
        names=tuple(one.name for one in files.values()),
    )


def _mentions(text: str, folder: Path) -> Iterator[_Mention]:
    for match in _MENTION.finditer(text):
        quoted = match["quoted"]
        for name in (quoted,) if quoted else _candidates(match["plain"]):
            try:
                path = folder / Path(name).expanduser()
                mode = _mode(path)
            except (RuntimeError, ValueError):
                # The path begins with `~` and the name of an unknown user, or it contains a NUL.
                continue
            if mode is not None or _looks_like_path(name, folder):
                yield _Mention(
                    start=match.start(),
                    end=match.end(),
                    name=name,
                    escaped=bool(match["escaped"]),
                    path=path,
                    mode=mode,
                )
                break


def _candidates(word: str) -> list[str]:
    """Returns the word without its trailing punctuation, and then the unchanged word."""
    bare = word.rstrip(_PUNCTUATION)
    return [bare, word] if bare and bare != word else [word]


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except OSError:
        return None


def _looks_like_path(name: str, folder: Path) -> bool:
    """Returns whether the name of a missing file was probably meant as a path. Names such as
    `@scope/package` are not paths."""
    if _FILE_NAME.fullmatch(name):
        return "://" not in name
    first, slash, _ = name.partition("/")
    return bool(slash) and (first in ("", "~", ".", "..") or _mode(folder / first) is not None)


def _unescaped(text: str, mentions: Sequence[_Mention]) -> str:
    """Returns the text with `@` instead of `@@` before each escaped mention."""
    pieces, last = list[str](), 0
    for one in mentions:
        if one.escaped:
            pieces.append(text[last : one.start])
            last = one.start + 1
    return "".join([*pieces, text[last:]])


def _read(mention: _Mention) -> bytes:
    name, mode = mention.name, mention.mode
    if mode is None:
        raise FileNotAttached(f"There is no file {name!r}. Type @@{name} if you don't mean a file.")
    if stat.S_ISDIR(mode):
        raise FileNotAttached(f"{name!r} is a folder: mention the files in it that you mean.")
    if not stat.S_ISREG(mode):
        # A pipe or a device might never end.
        raise FileNotAttached(f"{name!r} is not a regular file.")
    try:
        with mention.path.open("rb") as file:
            data = file.read(LARGEST_TEXT)
            if media_type_of(data):
                data += file.read(LARGEST_MEDIA - len(data))
            more = file.read(1)
    except OSError as error:
        raise FileNotAttached(f"{name!r} can't be read: {error.strerror}.") from error
    if more and (media_type_of(data) or b"\0" not in data):
        raise FileNotAttached(
            f"{name!r} is too large: at most {len(data):,} bytes can be attached. Write its name"
            " without the @, and the agent can read parts of it."
        )
    return data


def _content(mention: _Mention, data: bytes) -> str | MediaFile:
    """Returns a text file as text between lines that name the file, or returns a media file."""
    name = mention.path.name
    media_type = media_type_of(data)
    if media_type is not None:
        attachment = Attachment(
            kind=kind_of(media_type), path="", media_type=media_type, name=name, size=len(data)
        )
        return MediaFile(attachment=attachment, data=data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise FileNotAttached(
            f"{mention.name!r} is neither UTF-8 text nor an image, a PDF, a WAV or an MP3 file."
            " Write its name without the @, and the agent can work on it with its tools."
        )
    return framed(f"{masked_values(text)}\n\n{NOTE}" if is_secret_file(name) else text, name)


def _check_total(kind: str, size: int, most: int) -> None:
    if size > most:
        raise FileNotAttached(f"The {kind} files of one message can have at most {most:,} bytes.")
