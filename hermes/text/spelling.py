"""Suggests the known word that a misspelled one was probably meant to be."""

from collections.abc import Iterable

COMPARED_LETTERS = 64
"""Letters of a word that are compared: the comparison is quadratic, and words can be long."""


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that resembles `word` most, whatever its case; None if none is similar.

    `cutoff` is the least similarity, from 0 for any word to 1 for the same word.
    """
    import difflib  # noqa: PLC0415  # only a mistake pays for it

    by_form = {one.casefold(): one for one in known}
    wanted = word.casefold()[:COMPARED_LETTERS]
    found = difflib.get_close_matches(wanted, by_form, n=1, cutoff=cutoff)
    return by_form[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The nearest word as the end of an error message; empty if none is similar."""
    return suggestion(nearest(word, known, cutoff))


def suggestion(near: str | None) -> str:
    """The word that was probably meant, as the end of an error message; empty for none."""
    return f": did you mean {near!r}?" if near else ""
