"""The header that names the parts of a request that had no effect."""

import re
from collections.abc import Callable, Collection, Sequence

from hermes.types.messages import Sampling

IgnoredOptions = Callable[[str | None, Sampling], Collection[str]]
"""Returns the names of the options that a model does not support, because its wire format has no
field for them."""
IGNORED_HEADER = "x-hermes-ignored"
MOST_NAMES = 32
_NAME = re.compile(r"[\w.\[\]-]{1,64}", re.ASCII)


def ignored_header(names: Sequence[str]) -> dict[str, str]:
    """Returns the header that lists the ignored `names`, or no header if nothing was ignored.

    The names come from the request, so a name that is long or unusual is replaced by a question
    mark.
    """
    if not names:
        return {}
    shown = dict.fromkeys(name if _NAME.fullmatch(name) else "?" for name in names)
    listed = list(shown)[:MOST_NAMES]
    more = [f"and {len(shown) - MOST_NAMES} more"] if len(shown) > MOST_NAMES else []
    return {IGNORED_HEADER: ", ".join([*listed, *more])}
