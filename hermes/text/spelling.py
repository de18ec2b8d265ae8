"""Suggests a known word for a misspelled word."""

from collections.abc import Iterable

COMPARED_LETTERS = 64
"""Maximum number of letters of a word that are compared. The comparison takes quadratic time, and
words can be long."""


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Returns the known word that is most similar to `word`, ignoring case, or None if no word is
    similar enough.

    `cutoff` is the smallest similarity that is enough. It is between 0 (any word) and 1 (only the
    same word).
    """
    import difflib  # noqa: PLC0415  # slow to import, rarely needed

    by_form = {one.casefold(): one for one in known}
    wanted = word.casefold()[:COMPARED_LETTERS]
    found = difflib.get_close_matches(wanted, by_form, n=1, cutoff=cutoff)
    return by_form[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Returns the nearest word as the end of an error message, or "" if none is similar."""
    return suggestion(nearest(word, known, cutoff))


def suggestion(near: str | None) -> str:
    """Returns a suggestion as the end of an error message, or "" for None."""
    return f": did you mean {near!r}?" if near else ""
