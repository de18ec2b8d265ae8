"""While an error repeats, the log has one line per minute."""

import logging
import weakref

from hermes.entry.cli.log_format import REPEATED
from hermes.entry.cli.log_limit import MOST_FAULTS, SAME_FAULT_SECONDS, RepeatedFaults
from hermes.testing.running import until


class Log:
    """A log with the limit on repeated lines, and with a clock of its own."""

    def __init__(self, seconds: float = SAME_FAULT_SECONDS) -> None:
        self.now = 1000.0
        self.written: list[tuple[str, int | None]] = []
        """Each pair has a message that was written, and the number of similar records that were
        left out before this message (None if no number was written)."""
        self.limit = RepeatedFaults(self._write, seconds)

    def __call__(self, message: str, *args: object, level: int = logging.WARNING) -> None:
        record = logging.LogRecord("hermes.test", level, "", 0, message, args, None)
        record.created = self.now
        if self.limit.filter(record):
            self._write(record)

    def _write(self, record: logging.LogRecord) -> None:
        self.written.append((record.getMessage(), record.__dict__.get(REPEATED)))


def test_a_thousand_failed_requests_in_a_minute_are_one_line() -> None:
    log = Log()
    for number in range(1000):
        log("no room for message %s: %s", f"m{number}", OSError(28, "No space left"))
    assert len(log.written) == 1
    log.now += SAME_FAULT_SECONDS
    log("no room for message %s: %s", "m1000", OSError(28, "No space left"))
    assert [left_out for _, left_out in log.written] == [None, 999]
    log.now += SAME_FAULT_SECONDS
    log("no room for message %s: %s", "m1001", OSError(28, "No space left"))
    assert log.written[-1][1] is None


def test_other_errors_have_lines_of_their_own() -> None:
    log = Log()
    for _ in range(3):
        log("%s can't be reached", "openai")
        log("%s can't be reached", "anthropic")
        log("%s can't log in", "openai")
        log("401 for %s", "10.0.0.1")
        log("401 for %s", "10.0.0.2")
    assert [message for message, _ in log.written] == [
        "openai can't be reached",
        "anthropic can't be reached",
        "openai can't log in",
        "401 for 10.0.0.1",
    ]


def test_the_first_named_field_is_the_subject_of_a_record() -> None:
    log = Log()
    for code in ("disconnected", "disconnected", "budget"):
        log("%(code)s: turn %(turn)s failed", {"code": code, "turn": "t1"})
    assert len(log.written) == 2


def test_records_below_a_warning_are_never_left_out() -> None:
    log = Log()
    for _ in range(5):
        log("accepted", level=logging.INFO)
    assert len(log.written) == 5


def test_hostile_names_do_not_circumvent_the_limit() -> None:
    log = Log()
    letters = "abcdefghijklmnop"
    names = [a + b + c for a in letters for b in letters for c in letters]
    for name in names:
        log("%s is unknown", name)
    assert len(log.written) == MOST_FAULTS + 1
    log.now += SAME_FAULT_SECONDS
    log("%s is unknown", "new")
    assert len(log.written) == MOST_FAULTS + 2


def test_the_end_of_the_log_reports_how_many_lines_were_left_out() -> None:
    log = Log()
    for number in range(3):
        log("message %s is lost", number)
    log.limit.report_all()
    assert log.written == [("message 0 is lost", None), ("message 2 is lost", 1)]
    log.limit.report_all()
    assert len(log.written) == 2


async def test_the_number_of_left_out_lines_is_reported_after_a_minute() -> None:
    log = Log(seconds=0.05)
    for number in range(10):
        log("message %s is lost", number)
    assert len(log.written) == 1
    await until(lambda: len(log.written) == 2)
    assert log.written[1] == ("message 9 is lost", 8)


class Large(Exception):
    """Stands for an exception whose stack uses much memory."""


def test_a_record_that_is_left_out_keeps_no_stack_alive() -> None:
    log, error = Log(), Large()
    alive = weakref.ref(error)
    log("it broke")
    info = (Large, error, None)
    record = logging.LogRecord("hermes.test", logging.ERROR, "", 0, "it broke", (), info)
    record.created = log.now
    assert not log.limit.filter(record)
    assert record.exc_info is info, "other handlers may need it"
    del record, info, error
    assert alive() is None
