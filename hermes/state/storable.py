"""Says which text a store can hold, so that all stores refuse the same."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def require_storable(text: str) -> None:
    """Raises UnicodeEncodeError, as for half a character, if the text has a NUL character.

    PostgreSQL can't store NUL in text.
    """
    place = text.find("\0")
    if place >= 0:
        raise UnicodeEncodeError("utf-8", text, place, place + 1, "NUL can't be stored in text")


def storable(text: str) -> str:
    """The text with a replacement for each NUL character, for words that a model may have written.

    The words themselves are stored as JSON, in which NUL is escaped.
    """
    return text.replace("\0", REPLACEMENT)
