"""A log record is written as one line, or as a JSON object."""

import json
import logging
import re

from hypothesis import given
from hypothesis import strategies as st

from hermes.entry.cli.log_format import REPEATED, json_format, text_format
from hermes.text.console import printable
from hermes.text.redact import FixedFields, RedactingFilter

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ +hermes\.test: .*")
FORGED = "ok\n2026-01-01 10:00:00,000 ERROR   hermes: forged\r\x1b[2J\u2028\u202e"


def record(message: str, *args: object) -> logging.LogRecord:
    return logging.LogRecord("hermes.test", logging.INFO, "", 0, message, args, None)


def failed(text: str) -> logging.LogRecord:
    """Returns a log record that contains an exception with this text."""
    error = ValueError(text)
    info = (ValueError, error, None)
    made = logging.LogRecord("hermes.test", logging.ERROR, "", 0, "broke", (), info)
    RedactingFilter().filter(made)
    return made


def test_a_record_is_written_as_one_line() -> None:
    line = text_format(record("turn %s took %.1f s", "t", 1.23))
    assert LINE.fullmatch(line.removesuffix("\n"))
    assert line.endswith("INFO    hermes.test: turn t took 1.2 s\n")


@given(st.text() | st.just(FORGED))
def test_no_text_can_add_a_line_or_control_a_terminal(text: str) -> None:
    line = text_format(record("it says %s", text))
    assert line.endswith("\n")
    assert len(line.splitlines()) == 1
    assert printable(line) == line


def test_a_traceback_can_t_look_like_a_record() -> None:
    first, *trace = text_format(failed(FORGED)).splitlines()
    assert first.endswith("hermes.test: broke")
    assert trace[0].startswith("    | ValueError: ok")
    assert any("forged" in line for line in trace)
    assert all(line.startswith("    | ") for line in trace)
    assert printable("\n".join(trace)) == "\n".join(trace)


def test_lines_that_were_left_out_are_counted() -> None:
    made = record("the disk is full")
    made.__dict__[REPEATED] = 7
    assert text_format(made).endswith("full [7 more like this since the last line]\n")
    assert json.loads(json_format(made))["repeated"] == 7


def test_json_has_the_fields_of_a_record() -> None:
    message = FixedFields("turn %(turn)s used %(tokens)d tokens")
    shown = json.loads(json_format(record(message, {"turn": "t", "tokens": 5})))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", shown.pop("time"))
    assert shown == {
        "level": "INFO",
        "logger": "hermes.test",
        "message": "turn t used 5 tokens",
        "turn": "t",
        "tokens": 5,
    }


def test_a_json_record_is_one_line_for_any_message() -> None:
    line = json_format(record("%s", FORGED))
    assert json.loads(line)["message"] == FORGED
    assert len(line.splitlines()) == 1
    assert printable(line) == line
    assert "ValueError: a\nb" in json.loads(json_format(failed("a\nb")))["exception"]
