"""Finds the names of people in a text."""

import re
from collections.abc import Iterable


def mentions(text: str, names: Iterable[str]) -> bool:
    """Returns whether the text contains one of the names as a word of its own, in upper or lower
    case."""
    found = "|".join(re.escape(name) for name in names if name)
    pattern = rf"(?<!\w)(?:{found})(?!\w)"
    return bool(found) and re.search(pattern, text, re.IGNORECASE) is not None
