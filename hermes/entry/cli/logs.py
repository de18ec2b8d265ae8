"""The log of a process: one line per record on stderr, without secrets."""

import logging
import sys
from collections.abc import Iterable
from typing import TextIO

from hermes.text.redact import RedactingFilter

FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


def start_logging(level: str, secrets: Iterable[str], out: TextIO | None = None) -> None:
    """From now on what is logged stands on stderr, or where it is told."""
    lines = logging.StreamHandler(out or sys.stderr)
    lines.setFormatter(logging.Formatter(FORMAT))
    lines.addFilter(RedactingFilter(secrets))
    logging.basicConfig(level=level, handlers=[lines], force=True)
    # Its starts and stops are ours to tell.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
