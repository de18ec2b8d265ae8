"""The log of a process: one line per record on stderr and in a file, without secrets."""

import asyncio
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TextIO

from hermes.entry.cli.log_file import LogFile
from hermes.entry.cli.log_format import LogFormat, json_format, text_format
from hermes.entry.cli.log_limit import RepeatedFaults
from hermes.settings import Settings
from hermes.text.console import printable_line
from hermes.text.redact import RedactingFilter

WAIT_SECONDS = 0.25
"""Maximum time in seconds for which a line is held back, so that several lines are written
together. Warnings and errors are written at once."""
MOST_WAITING = 1000
"""Maximum number of lines that are held back. When it is reached, all these lines are written at
once."""

ON_SCREEN = frozenset({"hermes.control.turn_log", "hermes.core.models.retry"})
"""The loggers of turns and providers. A terminal shows their messages together with the answer, so
the log of a terminal leaves them out."""

NOTICES = frozenset({"hermes.core.context_files"})
"""The loggers whose messages are meant for the person at a terminal. The terminal shows these
messages without the time, the level and the name of the logger."""

LogSink = Callable[[str], None]


def start_logging(level: str, secrets: Iterable[str], out: TextIO | None = None) -> None:
    """Writes the log to stderr, or to `out`. Leaves out the messages of the loggers in `ON_SCREEN`,
    which a terminal shows with the answer."""
    lines = _log_to([_stream(out or sys.stderr)], terminal_format, level, secrets)
    lines.addFilter(lambda record: record.name not in ON_SCREEN)


def terminal_format(record: logging.LogRecord) -> str:
    if record.name in NOTICES:
        return f"· {printable_line(record.getMessage())}\n"
    return text_format(record)


def start_service_log(settings: Settings, secrets: Iterable[str]) -> "ServiceLog":
    """Writes the log to stderr and to `logs/hermes.log` in the home."""
    own = settings.logging
    form: LogFormat = json_format if own.format == "json" else text_format
    path = settings.home.logs / "hermes.log"
    file = LogFile(path, int(own.max_size_mb * 1_000_000), own.backup_count)
    screen = PausableStream(sys.stderr)
    sinks = [screen.write, lambda text: file.write(text.encode(errors="replace"))]
    return ServiceLog(_log_to(sinks, form, own.level, secrets), screen)


class ServiceLog:
    """The log of a service. While an answer is printed to stdout, no line is written to stderr."""

    def __init__(self, lines: "LogWriter", screen: "PausableStream") -> None:
        self._lines = lines
        self._screen = screen

    @contextmanager
    def paused_on_screen(self) -> Iterator[None]:
        """Holds back lines for stderr until the block ends. The log file gets these lines at
        once."""
        self._screen.paused = True
        try:
            yield
        finally:
            self._screen.paused = False
            self._lines.flush()
            self._screen.write("")


class PausableStream:
    """Writes text to a stream. While `paused` is set, the text is collected and not written."""

    def __init__(self, out: TextIO) -> None:
        self.paused = False
        self._write = _stream(out)
        self._held = ""

    def write(self, text: str) -> None:
        self._held += text
        if self._held and not self.paused:
            text, self._held = self._held, ""
            self._write(text)


def _log_to(
    sinks: Sequence[LogSink], form: LogFormat, level: str, secrets: Iterable[str]
) -> "LogWriter":
    lines = LogWriter(sinks, form)
    if level != "DEBUG":
        faults = RepeatedFaults(lines.handle)
        lines.before_end = faults.report_all
        lines.addFilter(faults)
    lines.addFilter(RedactingFilter(secrets))
    logging.basicConfig(level=level, handlers=[lines], force=True)
    # No line shows these values, and computing them takes longer than writing a line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # noqa: SLF001  # as the logging HOWTO says
    # uvicorn's messages about its start and stop are left out, because we log our own.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    return lines


def _stream(out: TextIO) -> LogSink:
    def write(text: str) -> None:
        # The interpreter closes the stream when it exits, and a write then raises ValueError.
        with suppress(ValueError):
            out.write(text)
            out.flush()

    return write


class LogWriter(logging.Handler):
    """Formats a record once and writes it to every sink.

    Warnings are written at once. Under load, other lines are written a few times a second.
    """

    def __init__(self, sinks: Sequence[LogSink], form: LogFormat) -> None:
        super().__init__()
        self._sinks = sinks
        self._form = form
        self._waiting: list[str] = []
        self._written_at = 0.0
        self._failing: set[LogSink] = set()
        self.before_end: Callable[[], None] = lambda: None
        """A function that is called before the log ends."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._waiting.append(self._form(record))
        except (KeyError, TypeError, ValueError):
            # The arguments of the record do not fit its message, which is a mistake in the code
            # that logs.
            self.handleError(record)
            return
        urgent = record.levelno >= logging.WARNING
        full = len(self._waiting) >= MOST_WAITING
        if urgent or full or record.created - self._written_at >= WAIT_SECONDS:
            self._written_at = record.created
            self.flush()
        elif len(self._waiting) == 1:
            self._flush_later()

    def flush(self) -> None:
        """Writes the waiting lines."""
        self.acquire()
        try:
            text, self._waiting = "".join(self._waiting), []
            if text:
                self._write(text)
        finally:
            self.release()

    def close(self) -> None:
        self.before_end()
        self.flush()
        super().close()

    def _flush_later(self) -> None:
        try:
            asyncio.get_running_loop().call_later(WAIT_SECONDS, self.flush)
        except RuntimeError:
            # This thread has no event loop that could write the line later.
            self.flush()

    def _write(self, text: str) -> None:
        for sink in self._sinks:
            try:
                sink(text)
            except OSError as error:
                if sink not in self._failing:
                    self._failing.add(sink)
                    self._write(self._form(_failure(error)))
            else:
                self._failing.discard(sink)


def _failure(error: OSError) -> logging.LogRecord:
    message = f"a part of the log can't be written: {error}"
    return logging.LogRecord(__name__, logging.ERROR, "", 0, message, None, None)
