"""Files that are there to hold secrets, known by their names: what of them may be shown."""

import re

from hermes.text.redact import mask

NOTE = "[values are masked, because such a file holds secrets; change single lines with patch]"

_NAMES = re.compile(
    r"\.env(\..+)?|.+\.env|\.envrc|\.netrc|_netrc|\.pgpass|\.npmrc|\.pypirc|\.my\.cnf|\.htpasswd"
    r"|\.git-credentials|\.?(credentials?|secrets?)(\.(json|ya?ml|toml|ini|cfg|txt|env))?"
    r"|.+\.tfvars|id_(rsa|dsa|ecdsa|ed25519)(_sk)?|.+\.(pem|key|p8|ppk)",
    re.IGNORECASE,
)
_EXAMPLES = (".example", ".sample", ".template", ".dist")
_KEPT = re.compile(r"[\s\[\]{}(),]*|\s*\[[\w .-]+\]\s*|\s*#[^=:]*|-----(BEGIN|END) [A-Z0-9 ]+-----")
"""A line without a value: brackets, a heading, a comment, the marks around a key."""
_OPAQUE = re.compile(r"[A-Za-z0-9+/]+={0,2}")
"""A line of a key may end like a name does."""
_NAMED = re.compile(
    r"(?P<name>[\s#;]*(?:export\s+)?(?:[\w\"'.@/:-]{1,100}?\s*=|[\w\"'.-]{1,100}?\s*:)\s*)"
    r"(?P<value>\S.*)"
)


def is_secret_file(path: str) -> bool:
    """Whether a file of that name is there to hold secrets; an example of one is not."""
    name = path.rpartition("/")[2].strip("'\"")
    return _NAMES.fullmatch(name) is not None and not name.endswith(_EXAMPLES)


def masked_values(text: str) -> str:
    """The text of such a file, or lines of it, with the names in it and without the values."""
    return "\n".join(map(_masked_line, text.split("\n")))


def _masked_line(line: str) -> str:
    if _KEPT.fullmatch(line):
        return line
    named = None if _OPAQUE.fullmatch(line.strip()) else _NAMED.fullmatch(line)
    return named["name"] + mask(named["value"].strip("\"', \r")) if named else "…"
