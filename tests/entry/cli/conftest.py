"""Fixtures that run the `hermes` command as a process, with a fake model."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self
from urllib.request import urlopen

import pytest

from hermes.testing.forking import run_forked

Run = Callable[..., "subprocess.CompletedProcess[str]"]


class Service:
    """`hermes gateway` in the foreground of a process of its own."""

    def __init__(self, environ: dict[str, str], *args: str, stderr: int = subprocess.PIPE) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hermes", "gateway", *args],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        self.lines: list[str] = []
        self.shown: dict[str, str] = {}
        """Maps each label in the output to the text after it, as in `model: fake`. The value of
        `curl` is the last line: a command that sends a question to the API."""

    def __enter__(self) -> Self:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            label, _, text = line.strip().partition(": ")
            self.shown[label] = text.strip()
            if line.startswith("  curl "):
                self.shown["curl"] = line
                return self
        raise AssertionError(self.process.communicate()[1])

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def answer(self) -> str:
        """Runs the `curl` command of the output. Joins the events of the streamed answer, and
        returns its text."""
        events = re.findall(r"^data: ({.*)$", self.curl(), re.MULTILINE)
        deltas = (choice["delta"] for event in events for choice in json.loads(event)["choices"])
        return "".join(delta.get("content") or "" for delta in deltas)

    def curl(self) -> str:
        """Runs the `curl` command of the output, and returns what it prints."""
        done = subprocess.run(
            ["bash", "-c", self.shown["curl"]],
            env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def end(self) -> tuple[int, str]:
        """Waits until the process has ended. Returns its exit code and its log."""
        logged = self.process.communicate(timeout=30)[1]
        return self.process.returncode, logged


@pytest.fixture(scope="session")
def model_url() -> Iterator[str]:
    """Yields the base URL of a model that echoes messages and follows the directives in them."""
    command = [sys.executable, "-m", "hermes.testing.model"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            yield server.stdout.readline().rpartition(" ")[2].strip()
        finally:
            server.terminate()


@pytest.fixture
def environ(tmp_path: Path, model_url: str) -> dict[str, str]:
    """Returns the environment variables for `hermes`: a new home, the fake model, and no settings
    of this machine."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "HERMES_HOME": str(tmp_path / "home"),
        "HERMES_CUSTOM_BASE_URL": model_url,
        "HERMES_MODEL": "fake",
    }


@pytest.fixture
def home(environ: dict[str, str]) -> Path:
    return Path(environ["HERMES_HOME"])


@pytest.fixture
def hermes(environ: dict[str, str]) -> Run:
    """Returns a function that runs `hermes` until it ends, with `stdin` as its input."""

    def run(
        *args: str, stdin: str | None = None, **names: str
    ) -> "subprocess.CompletedProcess[str]":
        given = {**environ, **names}
        if not any(name.startswith("PYTHON") for name in given):
            return run_forked(args, given, stdin or "")
        # Only a new process reads the variables of Python itself, such as PYTHONPATH.
        return subprocess.run(
            [sys.executable, "-m", "hermes", *args],
            input=stdin or "",
            env=given,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture
def until_asked() -> Callable[[str], None]:
    """Returns a function that waits until the fake model at a URL has a request that it has not
    finished answering."""

    def wait(url: str) -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with urlopen(f"{url.removesuffix('/v1')}/_stats") as reply:
                if json.load(reply)["open"]:
                    return
            time.sleep(0.02)
        raise AssertionError("the model was never asked")

    return wait
