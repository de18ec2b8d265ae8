"""Determines which text can be stored, so that all stores reject the same text."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def require_storable(text: str) -> None:
    """Raises UnicodeEncodeError if the text has a NUL character or a lone surrogate. PostgreSQL
    can't store NUL in text."""
    place = text.find("\0")
    if place >= 0:
        raise UnicodeEncodeError("utf-8", text, place, place + 1, "NUL can't be stored in text")


def storable(text: str) -> str:
    """Returns the text with each NUL character replaced. Use this function for text that a model
    may have written, if the original text is also stored as JSON, which escapes NUL."""
    return text.replace("\0", REPLACEMENT)
