"""Defines holes: characters that mark a part of a string whose text is known only when the command
runs."""

ANYTHING = "\0"
"""Stands for unknown text that the shell may split into several words."""
PLAIN_NAME = "\1"
"""Unknown text that is a plain name or number: it has no slash, no space and no leading dash."""
ONE_WORD = "\2"
"""Stands for unknown text that stays one word, because the text is in quotes."""
SECRET_TEXT = "\3"  # noqa: S105
"""Unknown text that holds a secret."""
DOWNLOAD = "\4"
"""Stands for unknown text that comes from the network."""

ENDLESS = "\5"
"""Unknown text without an end, such as the output of `yes`."""

HOLES = frozenset((ANYTHING, PLAIN_NAME, ONE_WORD, SECRET_TEXT, DOWNLOAD, ENDLESS))
_OPEN = HOLES - {PLAIN_NAME}
_SHOWN = str.maketrans(dict.fromkeys(HOLES, "…"))


def is_known(text: str) -> bool:
    """Returns whether the text has no unknown part."""
    return not text or min(text) > ENDLESS


def is_open(text: str) -> bool:
    """Returns whether the text has an unknown part other than a plain name (`PLAIN_NAME`)."""
    return not is_known(text) and not _OPEN.isdisjoint(text)


def quoted(text: str) -> str:
    """Returns the text in the form that it has inside double quotes. There, the shell does not
    split unknown parts into words."""
    return text.replace(ANYTHING, ONE_WORD)


def unquoted(text: str) -> str:
    """Returns the text in the form that it has outside of quotes. There, the shell may split
    unknown parts into words."""
    return text.replace(ONE_WORD, ANYTHING)


def derived(*sources: str) -> str:
    """Returns unknown text for a result that is computed from the sources. The text is marked as
    secret or as downloaded if one of the sources has that mark."""
    marks = [hole for hole in (SECRET_TEXT, DOWNLOAD) if any(hole in text for text in sources)]
    return "".join(marks) or ANYTHING


def is_only_unknown(text: str) -> bool:
    """Returns whether the text consists of unknown parts, with nothing but blanks between them."""
    bare = text.strip()
    return bool(bare) and not bare.strip("".join(HOLES) + " \n")


def shown(text: str) -> str:
    """Returns the text in the form that people see, with an ellipsis for each unknown part. An
    ellipsis in the text itself is escaped."""
    if "…" in text:
        text = text.replace("…", "\\u2026")
    return text if is_known(text) else text.translate(_SHOWN)
