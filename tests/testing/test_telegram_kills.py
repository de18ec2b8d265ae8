"""A gateway on Telegram that is killed at random keeps all promises."""

import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "options", [["--store", "sqlite"], ["--store", "postgres"], ["--drafts"]], ids=" ".join
)
def test_kills_and_failures_of_the_bot_api_break_no_promise(options: list[str]) -> None:
    load = ["--chats", "6", "--messages", "4", "--kills", "2", "--cuts", "2", "--seed", "1"]
    command = [sys.executable, "-m", "hermes.testing.telegram_kills", *load, *options]
    done = subprocess.run(
        [*command, "--seconds", "240"], capture_output=True, text=True, timeout=290, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
