"""Limits the log to one line a minute while a fault lasts, and counts the lines that are left
out."""

import asyncio
import copy
import logging
from collections.abc import Callable, Mapping

from hermes.entry.cli.log_format import REPEATED

SAME_FAULT_SECONDS = 60.0
MOST_FAULTS = 256
"""Maximum number of faults that are counted separately. All further faults of a logger are
counted as one."""
LONGEST_SUBJECT = 40

FaultKey = tuple[str, str, str]
"""Logger, message and subject of a record."""


class _Fault:
    """A fault that was logged in the last minute."""

    def __init__(self, logged_at: float) -> None:
        self.logged_at = logged_at
        self.latest: logging.LogRecord | None = None
        """The last record that was left out."""
        self.left_out = 0


class RepeatedFaults(logging.Filter):
    """Passes on all records below a warning, and one warning or error of each kind per minute.

    Records are of one kind if they have the same logger, the same message before its arguments are
    filled in, and the same subject. The subject is the first argument if it is a short name without
    digits, such as an account or a provider. Ids and addresses are not subjects, because they
    differ in every request. At the end of the minute, the last record that was left out is passed
    to `report`.
    """

    def __init__(
        self, report: Callable[[logging.LogRecord], object], seconds: float = SAME_FAULT_SECONDS
    ) -> None:
        super().__init__()
        self._seconds = seconds
        self._report = report
        self._faults: dict[FaultKey, _Fault] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING or REPEATED in record.__dict__:
            return True
        key = self._key(record)
        fault = self._faults.get(key)
        if fault is None or record.created - fault.logged_at >= self._seconds:
            self._faults[key] = _Fault(record.created)
            if fault is not None and fault.left_out:
                record.__dict__[REPEATED] = fault.left_out
            return True
        # The copy has no traceback, which would keep the values of a whole stack alive.
        fault.latest = copy.copy(record)
        fault.latest.exc_info = None
        fault.left_out += 1
        if fault.left_out == 1:
            self._report_later(key, fault, fault.logged_at + self._seconds - record.created)
        return False

    def report_all(self) -> None:
        """Reports the records that were left out, before the log ends."""
        for key, fault in list(self._faults.items()):
            self._report_now(key, fault)

    def _report_later(self, key: FaultKey, fault: _Fault, seconds: float) -> None:
        try:
            asyncio.get_running_loop().call_later(seconds, self._report_now, key, fault)
        except RuntimeError:
            # Without an event loop, no timer can be set. The next record of this kind then reports
            # how many records were left out.
            return

    def _report_now(self, key: FaultKey, fault: _Fault) -> None:
        record = fault.latest
        if record is None or self._faults.get(key) is not fault:
            return
        record.__dict__[REPEATED] = fault.left_out - 1
        self._faults[key] = _Fault(fault.logged_at + self._seconds)
        self._report(record)

    def _key(self, record: logging.LogRecord) -> FaultKey:
        message = str(record.msg)
        key = (record.name, message, _subject(record))
        if key in self._faults or len(self._faults) < MOST_FAULTS:
            return key
        self._faults = {
            known: fault
            for known, fault in self._faults.items()
            if record.created - fault.logged_at < self._seconds
        }
        return key if len(self._faults) < MOST_FAULTS else (record.name, "", "")


def _subject(record: logging.LogRecord) -> str:
    args = record.args.values() if isinstance(record.args, Mapping) else record.args
    first = next(iter(args or ()), None)
    if not isinstance(first, str) or len(first) > LONGEST_SUBJECT:
        return ""
    return "" if any(map(str.isdigit, first)) else first
