"""Checks whether a text mentions a name."""

import re
from collections.abc import Iterable


def mentions(text: str, names: Iterable[str]) -> bool:
    """Returns whether the text contains one of the names as a whole word. Case does not matter,
    and empty names are ignored."""
    found = "|".join(re.escape(name) for name in names if name)
    pattern = rf"(?<!\w)(?:{found})(?!\w)"
    return bool(found) and re.search(pattern, text, re.IGNORECASE) is not None
