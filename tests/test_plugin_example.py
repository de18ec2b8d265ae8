"""An installed plugin adds a platform, tool, wire format, backend, command and agent."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "letterbox.py"
KEY = "sk-telegraph-0123456789"
ANSWER_SECONDS = 20.0


class TelegraphServer(ThreadingHTTPServer):
    """A server for chat completions at /telegraph. It calls the tool that a person names."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), TelegraphHandler)
        self.requests: list[tuple[dict[str, str], dict[str, object]]] = []

    def answer(self, messages: list[dict[str, str]]) -> dict[str, object]:
        last = messages[-1]
        if last["role"] == "tool":
            return {"role": "assistant", "content": f"It says: {last['content']}"}
        name, _, arguments = last["content"].partition(" ")
        if not arguments.startswith("{"):
            return {"role": "assistant", "content": f"You said {last['content']!r}"}
        function = {"name": name, "arguments": arguments}
        call = {"id": "call_1", "type": "function", "function": function}
        return {"role": "assistant", "content": "", "tool_calls": [call]}


class TelegraphHandler(BaseHTTPRequestHandler):
    server: TelegraphServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append((dict(self.headers.items()), body))
        refused = self.path != "/telegraph" or self.headers["x-telegraph-key"] != KEY
        message = self.server.answer(body["messages"])
        reason = "tool_calls" if "tool_calls" in message else "stop"
        choice = {"index": 0, "message": message, "finish_reason": reason}
        data = json.dumps({"id": "1", "choices": [choice]}).encode()
        self.send_response(403 if refused else 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


@contextmanager
def telegraph() -> Iterator[TelegraphServer]:
    with TelegraphServer() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class Office:
    """A home, a letterbox, and the installed plugin."""

    def __init__(self, folder: Path, base_url: str) -> None:
        self.box, self.home, site = folder / "box", folder / "home", folder / "site"
        for path in (self.box, self.home / "profiles" / "clerk", site):
            path.mkdir(parents=True)
        shutil.copy(EXAMPLE, site / "letterbox.py")
        info = site / "letterbox-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: letterbox\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[hermes.plugins]\nletterbox = letterbox:plugin\n")
        model = {"default": "m", "base_url": base_url, "wire": "telegraph", "api_key": KEY}
        config = {
            "model": model,
            "terminal": {"backend": "polite"},
            "platforms": {"letterbox": {"folder": str(self.box), "allow_all": True}},
            "api_server": {"port": 0},
        }
        (self.home / "config.yaml").write_text(json.dumps(config))
        clerk = self.home / "profiles" / "clerk"
        (clerk / "config.yaml").write_text(json.dumps({"model": model}))
        (clerk / "SOUL.md").write_text("You are the clerk of the office.")
        root = EXAMPLE.parents[2]
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "HERMES_HOME": str(self.home),
            "PYTHONPATH": f"{site}{os.pathsep}{root}",
        }

    def hermes(self, *args: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "hermes", *args],
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @contextmanager
    def gateway(self) -> Iterator[None]:
        command = [sys.executable, "-m", "hermes", "gateway", "run"]
        with (
            (self.home / "log").open("ab") as log,
            subprocess.Popen(command, env=self.environ, stdout=log, stderr=log) as process,
        ):
            try:
                yield
            finally:
                process.kill()

    def ask(self, chat: str, text: str) -> str:
        """Puts a letter into the box. Returns the answer."""
        before = set((self.box / "out").glob(f"{chat}-*"))
        letter = self.box / f"{chat}-{time.time_ns()}.txt"
        letter.write_text(text)
        give_up = time.monotonic() + ANSWER_SECONDS
        while not (self.box / "in").exists() and time.monotonic() < give_up:
            time.sleep(0.02)
        letter.rename(self.box / "in" / letter.name)
        while time.monotonic() < give_up:
            if new := set((self.box / "out").glob(f"{chat}-*")) - before:
                return new.pop().read_text()
            time.sleep(0.02)
        raise AssertionError((self.home / "log").read_text())


def test_the_example_is_short() -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 150


@pytest.mark.slow
def test_everything_that_the_plugin_adds_works_in_a_gateway(tmp_path: Path) -> None:
    with telegraph() as server:
        office = Office(tmp_path, f"http://127.0.0.1:{server.server_port}")
        checked = office.hermes("config", "check")
        assert checked.returncode == 0, checked.stdout + checked.stderr
        with office.gateway():
            assert office.ask("ann", "/ping pong?") == "pong pong?"
            assert office.ask("ann", "hello") == "You said 'hello'"
            stamped = office.ask("ann", 'postmark {"text": "a letter"}')
            assert stamped == "It says: [stamped] a letter"
            assert "19" in office.ask("ann", 'terminal {"command": "nice"}')
            assert office.ask("office", "hello") == "You said 'hello'"
        systems = [str(body["messages"][0]["content"]) for _, body in server.requests]  # type: ignore[index]
        assert "You are the clerk of the office." in systems[-1]
        assert not any("clerk of the office" in system for system in systems[:-1])
        listed = office.hermes("sessions", "list", "--json")
        keys = {json.loads(line)["key"] for line in listed.stdout.splitlines()}
        assert keys == {
            "agent:main:letterbox:private:ann",
            "agent:clerk:letterbox:private:office",
        }


@pytest.mark.slow
def test_without_the_plugin_its_settings_are_reported_as_unknown(tmp_path: Path) -> None:
    office = Office(tmp_path, "http://127.0.0.1:9")
    office.environ["PYTHONPATH"] = str(EXAMPLE.parents[2])
    checked = office.hermes("config", "check")
    assert checked.returncode == 1
    assert "telegraph" in checked.stdout
    assert "Traceback" not in checked.stdout + checked.stderr
