"""The command `hermes store copy` copies the store and explains the result."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes.state.paths import STORE_NAME
from hermes.testing.stores import store_url, stores_on_postgres
from hermes.testing.terminal import Terminal

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with stores_on_postgres():
        yield store_url(tmp_path)


@pytest.fixture
def talked(hermes: Run) -> Run:
    """Returns a function that runs `hermes` in a home with a conversation."""
    assert hermes("chat", "-s", "trip", "-q", "A trip to Oslo").returncode == 0
    return hermes


def test_the_output_lists_what_was_copied_and_how_to_use_the_copy(
    talked: Run, url: str, tmp_path: Path
) -> None:
    done = talked("store", "copy", "--to", url)
    home = tmp_path / "home"
    assert done.returncode == 0, done.stderr
    assert re.search(r"^copying: +(\d+) of \1 rows$", done.stderr, re.MULTILINE)
    assert re.search(r"^comparing: +(\d+) of \1 rows$", done.stderr, re.MULTILINE)
    assert "\r" not in done.stderr
    assert done.stdout.startswith(f"Copied {home / STORE_NAME} to the database ")
    assert re.search(r"^\d+ rows in \d+ tables were compared and are equal\.$", done.stdout, re.M)
    line = f"  HERMES_STORE_URL={url}"
    assert f"To run on the copy, put this line into {home / '.env'}:" in done.stdout
    assert line in done.stdout.splitlines()
    (home / ".env").write_text(f"{line.strip()}\n")
    (home / STORE_NAME).unlink()
    assert "trip" in talked("sessions", "list").stdout


def test_the_output_can_be_json(talked: Run, url: str) -> None:
    result = json.loads(talked("store", "copy", "--to", url, "--json").stdout)
    assert result["tables"]["sessions"] == 1
    assert result["resumed"] is False
    assert {"source", "target", "advice"} < result.keys()


def test_a_refusal_is_one_sentence(talked: Run, url: str) -> None:
    assert talked("store", "copy", "--to", url).returncode == 0
    again = talked("store", "copy", "--to", url)
    assert again.returncode == 1
    assert "is a complete copy of" in again.stderr
    assert "Traceback" not in again.stderr


def test_on_a_terminal_a_progress_bar_is_shown(
    talked: Run, url: str, tmp_path: Path, environ: dict[str, str]
) -> None:
    command = (sys.executable, "-m", "hermes", "store", "copy", "--to", url)
    variables = {**environ, "TERM": "xterm", "PATH": os.environ["PATH"]}
    with Terminal(command, variables, tmp_path, columns=140) as terminal:
        terminal.until("HERMES_STORE_URL=")
        assert f"copying ▕{'█' * 30}▏" in terminal.text
        assert f"comparing ▕{'█' * 30}▏" in terminal.text
