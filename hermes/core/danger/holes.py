"""Characters that stand for text which is known only when a command runs."""

ANYTHING = "\0"
"""Unknown text that the shell may split into several words."""
PLAIN_NAME = "\1"
"""Unknown text that is a plain name or number: it has no slash, no space and no leading dash."""
ONE_WORD = "\2"
"""Unknown text that stays one word, because it is quoted."""
SECRET_TEXT = "\3"  # noqa: S105
"""Unknown text that holds a secret."""
DOWNLOAD = "\4"
"""Unknown text that comes from the network."""

ENDLESS = "\5"
"""Unknown text without an end."""

HOLES = frozenset((ANYTHING, PLAIN_NAME, ONE_WORD, SECRET_TEXT, DOWNLOAD, ENDLESS))
_OPEN = HOLES - {PLAIN_NAME}
_SHOWN = str.maketrans(dict.fromkeys(HOLES, "…"))


def is_known(text: str) -> bool:
    """Returns whether the text has no unknown part."""
    return not text or min(text) > ENDLESS


def is_open(text: str) -> bool:
    """Returns whether an unknown part of the text may contain anything."""
    return not is_known(text) and not _OPEN.isdisjoint(text)


def quoted(text: str) -> str:
    """Returns the text inside double quotes, where the shell does not split it."""
    return text.replace(ANYTHING, ONE_WORD)


def unquoted(text: str) -> str:
    """Returns the text outside of quotes, where the shell splits it."""
    return text.replace(ONE_WORD, ANYTHING)


def derived(*sources: str) -> str:
    """Returns unknown text that was computed from the sources. It is as secret and as untrusted as
    they are."""
    marks = [hole for hole in (SECRET_TEXT, DOWNLOAD) if any(hole in text for text in sources)]
    return "".join(marks) or ANYTHING


def is_only_unknown(text: str) -> bool:
    """Returns whether the text has unknown parts and nothing else."""
    bare = text.strip()
    return bool(bare) and not bare.strip("".join(HOLES) + " \n")


def shown(text: str) -> str:
    """Returns the text for a reader, with an ellipsis for each unknown part."""
    return text if is_known(text) else text.translate(_SHOWN)
