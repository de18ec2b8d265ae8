"""Formats a log record as one line, in text or JSON. A text with line breaks can't add another line
to the log."""

import logging
import time
from collections.abc import Callable
from functools import lru_cache

import msgspec

from hermes.text.console import printable_json, printable_line

LogFormat = Callable[[logging.LogRecord], str]
"""Formats a record as a line, with its line break."""
TRACE_INDENT = "    | "
REPEATED = "repeated"
"""Name of an attribute of a log record. The value of the attribute is the number of similar records
that were left out before this record."""


def text_format(record: logging.LogRecord) -> str:
    """Formats a record as `2026-05-03 14:02:11,042 INFO hermes.control.turn_log: turn …
    completed in 1.2 s`.

    The lines of a traceback follow, indented.
    """
    when = f"{_local(int(record.created))},{int(record.msecs):03d}"
    text = printable_line(record.getMessage())
    if repeated := record.__dict__.get(REPEATED):
        text = f"{text} [{repeated} more like this since the last line]"
    line = f"{when} {record.levelname:<7} {record.name}: {text}\n"
    if not (record.exc_text or record.stack_info):
        return line
    trace = (f"{TRACE_INDENT}{printable_line(one)}\n" for one in _trace(record).splitlines())
    return line + "".join(trace)


def json_format(record: logging.LogRecord) -> str:
    """Formats a record as a JSON object: time, level, logger, message, and the record's named
    fields."""
    shown: dict[str, object] = {
        "time": f"{_utc(int(record.created))}.{int(record.msecs):03d}Z",
        "level": record.levelname,
        "logger": record.name,
        "message": record.getMessage(),
    }
    if isinstance(record.args, dict):
        shown |= record.args
    if repeated := record.__dict__.get(REPEATED):
        shown[REPEATED] = repeated
    if trace := _trace(record):
        shown["exception"] = trace
    return f"{printable_json(msgspec.json.encode(shown).decode())}\n"


# The text is cached, because under load thousands of records are logged in the same second.
@lru_cache(maxsize=2)
def _local(second: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))


@lru_cache(maxsize=2)
def _utc(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def _trace(record: logging.LogRecord) -> str:
    # `RedactingFilter` has set `exc_text` to the redacted traceback.
    return "\n".join(filter(None, (record.exc_text, record.stack_info)))
