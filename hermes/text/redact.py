"""Redacts secrets in text that people and logs see."""

import logging
import re
from collections.abc import Iterable

_SHORTEST = 6
_HINTED = 20
_NAME = (
    r"(?:passw(?:or)?d|passphrase|credentials?|token|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|secret(?:[_-]?(?:access[_-]?)?key)?)"
)
_VALUE = (
    r"\"(?P<double>(?:[^\"\\\n]|\\.)++)|'(?P<single>[^'\n]++)"
    r"|(?P<bare>[^\s\"'&,;$<{(][^\s\"'&,;]{3,}+)"
)

_VARIABLE = "|".join(
    f"(?<={end})"
    for end in (
        *("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIALS"),
        *("_PASS", "_PWD", "_AUTH"),
    )
)
_EXAMPLE = r"[=$<]|(?i:your|change|example|placeholder|xxx)"

# The patterns never backtrack, so that hostile text is searched in linear time.
_TOKENS = tuple(
    re.compile(pattern, flags)
    for pattern, flags in (
        (
            r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"
            r"(?P<secret>(?:[^-]++|-(?!----))*+(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?)",
            0,
        ),
        (r"://[^\s/:@]{0,256}:(?P<secret>[^\s/]+)(?=@)", 0),
        (r"\bbearer\s{1,4}(?P<secret>[\w.~+/=-]{6,}+)", re.I | re.A),
        (r"\bauthorization\W{1,8}basic\s{1,4}(?P<secret>[\w+/=-]++)", re.I | re.A),
        (r"(?<![A-Za-z0-9])(?P<secret>sk-[\w-]{16,}+)", re.A),
        (r"(?<![A-Za-z0-9])(?P<secret>(?:gh[pousr]_|github_pat_|glpat-)[\w-]{16,}+)", re.A),
        (r"(?<![A-Za-z0-9])(?P<secret>(?:xox[a-z]|xapp)-[\w-]{10,}+)", re.A),
        (
            r"(?<!\w)(?P<secret>(?:[sr]k_(?:live|test)_|gsk_|hf_|xai-|tvly-(?:dev-)?)"
            r"[A-Za-z0-9]{20,}+)",
            re.A,
        ),
        (r"(?<![A-Za-z0-9])(?P<secret>(?:AKIA|ASIA)[0-9A-Z]{16})", re.A),
        (r"(?<![A-Za-z0-9])(?P<secret>AIza[\w-]{30,}+)", re.A),
        (r"(?<!\d)(?P<secret>\d{8,10}:[\w-]{35,}+)", re.A),
        (r"(?<![\w-])(?P<secret>eyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]*+)", re.A),
        # Assignments as in .env files. A reference to another variable or a placeholder is not a
        # secret, so it is not matched.
        (
            rf"(?<![\w$])[A-Z][A-Z0-9_]{{2,64}}+(?:{_VARIABLE})=(?![\"']?(?:{_EXAMPLE}))(?:{_VALUE})",
            re.A,
        ),
    )
)
_ASSIGNED = re.compile(
    rf"{_NAME}[\"']?\s{{0,4}}[=:]\s{{0,4}}(?!bearer\b|basic\b)(?:{_VALUE})", re.I
)
"""A value that is assigned to a secret-sounding name. In code, such a value is often not a secret,
so `redact_tokens` does not mask it."""


def mask(secret: str) -> str:
    """Returns a few characters of a long secret, such as `sk-1…9f`. Returns only `…` for a short
    secret."""
    return f"{secret[:4]}…{secret[-2:]}" if len(secret) >= _HINTED else "…"


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Masks the given secrets and everything that looks like a secret."""
    return redact_assigned(redact_tokens(text, secrets))


def redact_assigned(text: str) -> str:
    """Masks each value that is assigned to a name like `password`."""
    return _ASSIGNED.sub(_masked, text)


def redact_tokens(text: str, secrets: Iterable[str] = ()) -> str:
    """Masks the given secrets, tokens of well-known services, and the values of environment
    variables with secret-sounding names.

    This function is for text that a model works on. Other values with names like `password` are not
    masked, because in code they are often not secrets.
    """
    text = redact_known(text, secrets)
    for shape in _TOKENS:
        text = shape.sub(_masked, text)
    return text


def redact_known(text: str, secrets: Iterable[str]) -> str:
    """Masks the given secrets only.

    This function is for text that a person approves. A pattern for secrets could mask a harmless
    part of a command, which the person must see.
    """
    known = {secret for secret in secrets if len(secret) >= _SHORTEST}
    # A secret that contains another secret must be replaced first. Otherwise a part of the longer
    # secret would remain.
    for secret in sorted(known, key=len, reverse=True):
        text = text.replace(secret, mask(secret))
    return text


def _masked(found: re.Match[str]) -> str:
    assert found.lastgroup, "every pattern has a named group for the secret"
    start = found.start(found.lastgroup) - found.start()
    return found[0][:start] + mask(found[found.lastgroup])


class FixedFields(str):
    """A log message for the hot path, with named fields: `log.info(MESSAGE, {"turn": id})`.

    The message is not searched for secrets, because its fields are our own ids, names and numbers,
    and never text from outside.
    """

    __slots__ = ()


class RedactingFilter(logging.Filter):
    """A filter for log handlers that redacts secrets in messages, their named fields and
    tracebacks."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._secrets = tuple(secrets)

    def filter(self, record: logging.LogRecord) -> bool:
        if type(record.msg) is FixedFields:
            return True
        named = record.args if isinstance(record.args, dict) else None
        record.msg, record.args = redact(_message(record), self._secrets), None
        if named:
            # A record keeps its named fields. Its message is formatted with them once more.
            record.msg = record.msg.replace("%", "%%")
            record.args = {
                name: redact(value, self._secrets) if isinstance(value, str) else value
                for name, value in named.items()
            }
        if record.exc_info:
            trace = record.exc_text or logging.Formatter().formatException(record.exc_info)
            # If `exc_text` is set, a formatter prints this text instead of the traceback. So the
            # redacted traceback is stored in `exc_text`.
            record.exc_text = redact(trace, self._secrets)
        if record.stack_info:
            record.stack_info = redact(record.stack_info, self._secrets)
        return True


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):
        # The arguments of the log call do not match its format string. An error here would be
        # raised in the code that logs, so the function returns an unformatted message.
        return f"{record.msg} {record.args}"
