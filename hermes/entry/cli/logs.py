"""The log of a process: one line per record on stderr, without secrets."""

import logging
import sys
from collections.abc import Iterable

from hermes.text.redact import RedactingFilter

FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


def start_logging(level: str, secrets: Iterable[str]) -> None:
    """From now on what is logged stands on stderr."""
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(logging.Formatter(FORMAT))
    lines.addFilter(RedactingFilter(secrets))
    logging.basicConfig(level=level, handlers=[lines], force=True)
    # Its starts and stops are ours to tell.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
