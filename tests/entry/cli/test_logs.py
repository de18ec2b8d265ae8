"""The log on stderr."""

import logging

import pytest

from hermes.entry.cli.logs import start_logging


def test_secrets_do_not_reach_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    before = logging.root.handlers[:], logging.root.level
    try:
        start_logging("INFO", ["a-very-secret-word"])
        logging.getLogger("hermes.test").info("the word is %s", "a-very-secret-word")
    finally:
        logging.root.handlers[:], logging.root.level = before
    logged = capsys.readouterr().err
    assert "hermes.test: the word is" in logged
    assert "a-very-secret-word" not in logged
