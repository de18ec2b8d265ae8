"""Recognizes secret files by their names, and masks the values in them."""

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
"""Matches a line without a value: brackets, a heading, a comment, or the first or last line of a
key."""
_OPAQUE = re.compile(r"[A-Za-z0-9+/]+={0,2}")
"""Matches a line of a key in base64. If such a line ends with `==`, `_NAMED` would match it, too,
and a part of the key would not be masked."""
_NAMED = re.compile(
    r"(?P<name>[\s#;]*(?:export\s+)?(?:[\w\"'.@/:-]{1,100}?\s*=|[\w\"'.-]{1,100}?\s*:)\s*)"
    r"(?P<value>\S.*)"
)


def is_secret_file(path: str) -> bool:
    """Returns whether a file with this name usually holds secrets. Returns False for an example
    file such as `.env.example`."""
    name = path.rpartition("/")[2].strip("'\"")
    return _NAMES.fullmatch(name) is not None and not name.endswith(_EXAMPLES)


def masked_values(text: str) -> str:
    """Masks the values in the lines of a secret file. The names of the values are kept."""
    return "\n".join(map(_masked_line, text.split("\n")))


def _masked_line(line: str) -> str:
    if _KEPT.fullmatch(line):
        return line
    named = None if _OPAQUE.fullmatch(line.strip()) else _NAMED.fullmatch(line)
    return named["name"] + mask(named["value"].strip("\"', \r")) if named else "…"
