"""`hermes gateway`."""

import hashlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil
import pytest

from hermes.testing.used_home import make_used_home

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
        """Maps each label in the output to the text after it, and `curl` to the last line, which is
        the command to try."""

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

    def curl(self) -> str:
        done = subprocess.run(
            ["bash", "-c", self.shown["curl"]],
            env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def end(self) -> tuple[int, str]:
        """Stops the process. Returns its exit code and its log."""
        logged = self.process.communicate(timeout=30)[1]
        return self.process.returncode, logged


@pytest.fixture
def home(environ: dict[str, str]) -> Path:
    return Path(environ["HERMES_HOME"])


def test_the_first_start_leads_to_an_answer(environ: dict[str, str], home: Path) -> None:
    with Service(environ, "--port", "0") as service:
        key = (home / "api_server.key").read_text().strip()
        assert len(key) >= 32
        assert f"The API key is in {home}/api_server.key. In another terminal:" in service.lines
        assert all(key not in text for text in service.shown.values())
        assert "you said:" in service.curl()
        service.process.send_signal(signal.SIGTERM)
        code, logged = service.end()
    assert code == 0
    assert key not in logged
    assert stat.S_IMODE((home / "api_server.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    with Service(environ, "--port", "0"):
        assert (home / "api_server.key").read_text().strip() == key


def test_a_configured_key_is_named_and_not_shown(environ: dict[str, str], home: Path) -> None:
    key = "a-key-of-the-operator-0123"
    with Service({**environ, "API_SERVER_KEY": key}, "--port", "0") as service:
        told = "The API key is in environment API_SERVER_KEY. In another terminal:"
        assert told in service.lines
        assert key not in service.shown["curl"]
    assert not (home / "api_server.key").exists()


@pytest.mark.parametrize("place", [".env", "config.yaml"])
def test_the_request_to_try_works_in_a_clean_shell_wherever_the_home_has_the_key(
    environ: dict[str, str], home: Path, place: str
) -> None:
    key = "a-key-of-the-operator-0123"
    contents = {
        ".env": f"API_SERVER_KEY='{key}'  # ours\n",
        "config.yaml": f"api_server: {{key: {key}}}\n",
    }
    home.mkdir(mode=0o700)
    (home / place).write_text(contents[place])
    with Service(environ, "--port", "0") as service:
        assert key not in "".join(service.lines)
        assert "you said:" in service.curl()


@pytest.mark.parametrize("key", ["x", "changeme-changeme-1", "password123456789"])
@pytest.mark.parametrize("place", ["environment", ".env", "config.yaml", "api_server.key"])
def test_a_key_that_others_could_guess_is_refused_from_any_source(
    environ: dict[str, str], home: Path, hermes: Run, place: str, key: str
) -> None:
    home.mkdir(mode=0o700)
    contents = {
        ".env": f"API_SERVER_KEY={key}\n",
        "config.yaml": f"api_server: {{key: {key}}}\n",
        "api_server.key": f"{key}\n",
    }
    if place in contents:
        (home / place).write_text(contents[place])
        (home / place).chmod(0o600)
    given = {"API_SERVER_KEY": key} if place == "environment" else {}
    refused = hermes("gateway", "run", "--port", "0", **given)
    assert refused.returncode == 78
    assert "`hermes gateway new-key`" in refused.stderr
    assert place in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    checked = hermes("config", "check", **given)
    assert checked.returncode == 1
    assert "`hermes gateway new-key`" in checked.stdout


def test_a_new_key_replaces_a_bad_one(environ: dict[str, str], home: Path, hermes: Run) -> None:
    home.mkdir(mode=0o700)
    (home / "api_server.key").write_text("x\n")
    made = hermes("gateway", "new-key")
    assert made.returncode == 0
    assert str(home / "api_server.key") in made.stdout
    key = (home / "api_server.key").read_text().strip()
    assert len(key) >= 32
    assert key not in made.stdout + made.stderr
    assert stat.S_IMODE((home / "api_server.key").stat().st_mode) == 0o600
    with Service(environ, "--port", "0") as service:
        assert "you said:" in service.curl()
    overruled = hermes("gateway", "new-key", API_SERVER_KEY="Qv7rXt2LmB9sKd4wZn6c")
    assert "environment API_SERVER_KEY sets another one" in overruled.stderr


def test_without_a_model_the_start_says_how_to_set_one(environ: dict[str, str]) -> None:
    bare = {**environ, "HERMES_CUSTOM_BASE_URL": "", "HERMES_MODEL": ""}
    with Service(bare, "--port", "0") as service:
        assert any("hermes config set model.base_url" in line for line in service.lines)


def test_a_first_question_is_answered_before_the_ways_in_are_shown(
    environ: dict[str, str],
) -> None:
    with Service(environ, "--port", "0", "--embedded", "--hello", "good morning") as service:
        assert service.lines.index("asked: good morning") < service.lines.index(
            f"The API key is in {environ['HERMES_HOME']}/api_server.key. In another terminal:"
        )
        assert any("you said:" in line and "good morning" in line for line in service.lines)
        # The flag has no effect if a model is configured.
        assert service.shown["model"].startswith("fake (custom")


def test_no_log_line_appears_inside_the_first_answer(
    environ: dict[str, str],
) -> None:
    asked = ("--hello", "tokens:20 delay:0.02")
    with Service(environ, "--port", "0", *asked, stderr=subprocess.STDOUT) as service:
        logged = [line for line in service.lines if "turn_log" in line]
        begun = service.lines.index("asked: tokens:20 delay:0.02")
        assert "you said:" in service.lines[begun + 1]
        assert logged
        assert all(line.startswith("20") for line in logged)


def test_a_first_question_that_fails_does_not_end_the_service(environ: dict[str, str]) -> None:
    with Service(environ, "--port", "0", "--hello", "status:400") as service:
        assert '"finish_reason":"stop"' in service.curl()
        service.process.send_signal(signal.SIGTERM)
        assert "told to fail" in service.end()[1]


@pytest.fixture
def offline(environ: dict[str, str]) -> dict[str, str]:
    """Returns an environment without a model, in which no package can be downloaded."""
    kept = {name: value for name, value in environ.items() if name.startswith(("PATH", "HERMES_H"))}
    return {**kept, "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1"}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_embedded_model_answers_without_a_network_and_ends_with_the_service(
    offline: dict[str, str], home: Path, embedded_model: Path, number: signal.Signals
) -> None:
    (home / "models").mkdir(parents=True)
    (home / "models" / embedded_model.name).symlink_to(embedded_model)
    hello = ("--embedded", "--hello", "Hello! What can you do?")
    with Service(offline, "--port", "0", *hello) as service:
        assert "small demo model" in service.shown["model"]
        asked = service.lines.index("asked: Hello! What can you do?")
        assert service.lines[asked + 1].split()
        assert '"finish_reason":"stop"' in service.curl()
        [child] = psutil.Process(service.process.pid).children()
        service.process.send_signal(number)
        service.end()
        psutil.wait_procs([child], 10)
        assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_without_a_network_the_embedded_model_is_missed_in_one_sentence(
    offline: dict[str, str],
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hermes", "gateway", "--port", "0", "--embedded"],
        env=offline,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "check the network connection" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


HERMES_AGENT_CONFIG = Path(__file__).parents[2] / "settings" / "hermes_agent_config.yaml"
"""Every key of the default configuration of Hermes Agent 0.19, with its value."""


def digests(home: Path) -> dict[str, str]:
    return {
        str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in home.rglob("*")
        if path.is_file()
    }


def test_a_used_hermes_agent_home_starts_and_stays_as_it_is(
    environ: dict[str, str], home: Path
) -> None:
    make_used_home(home)
    shutil.copy(HERMES_AGENT_CONFIG, home / "config.yaml")
    (home / ".env").write_text("TELEGRAM_BOT_TOKEN=123456:abc\n")
    before = digests(home)
    with Service(environ, "--port", "0") as service:
        assert "you said:" in service.curl()
        service.process.send_signal(signal.SIGTERM)
        code, logged = service.end()
    assert code == 0
    assert {name: digest for name, digest in digests(home).items() if name in before} == before
    assert len([*service.lines, *logged.splitlines()]) <= 15
    (found,) = (line for line in logged.splitlines() if "that is not used" in line)
    assert found.endswith("3 sessions, 2 cron jobs, 1 skill, tokens for telegram")
    assert "keys are ignored; `hermes config check` lists them" in logged
    assert "agent main runs commands on this machine" in logged


def test_config_check_lists_what_a_start_sums_up(
    environ: dict[str, str], home: Path, hermes: Run
) -> None:
    home.mkdir()
    shutil.copy(HERMES_AGENT_CONFIG, home / "config.yaml")
    done = hermes("config", "check")
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "ok"
    assert "config.yaml: browser is not supported yet and is ignored" in done.stdout
    assert len(done.stdout.splitlines()) > 100


def test_a_few_ignored_keys_are_named_at_the_start(environ: dict[str, str], home: Path) -> None:
    home.mkdir()
    (home / "config.yaml").write_text("browser: {}\ntts: {}\n")
    with Service(environ, "--port", "0") as service:
        service.process.send_signal(signal.SIGTERM)
        _, logged = service.end()
    assert "config.yaml: browser is not supported yet and is ignored" in logged
    assert "commands on this machine" not in logged


def test_the_log_tells_of_a_message_a_turn_and_a_wrong_key_and_is_kept_in_the_home(
    environ: dict[str, str], home: Path
) -> None:
    with Service(environ, "--port", "0", "--log-format", "json") as service:
        service.curl()
        url = service.lines[0].rpartition(" ")[2]
        for _ in range(5):
            with pytest.raises(HTTPError) as refused:
                urlopen(Request(f"{url}/v1/models", headers={"Authorization": "Bearer wrong"}))
            refused.value.close()
        service.process.send_signal(signal.SIGTERM)
        _, logged = service.end()
    records = [json.loads(line) for line in logged.splitlines()]
    said = [one["message"] for one in records]
    assert [text for text in said if text.startswith("accepted message")]
    (finished,) = (one for one in records if one.get("outcome") == "completed")
    assert finished["steps"] == 1
    assert finished["tokens_in"] > 0
    assert said.count("401 for 127.0.0.1: no valid key") == 2
    (last,) = (one for one in records if one.get("repeated"))
    assert last["repeated"] == 3
    assert (home / "logs" / "hermes.log").read_text() == logged


def test_status_and_stop_find_the_running_service(environ: dict[str, str], hermes: Run) -> None:
    assert hermes("gateway", "status").returncode == 1
    assert hermes("gateway", "stop").returncode == 1
    with Service(environ, "--port", "0") as service:
        told = json.loads(hermes("gateway", "status", "--json").stdout)
        assert told["running"] is True
        assert told["pid"] == service.process.pid
        assert hermes("gateway", "status").returncode == 0
        stopped = hermes("gateway", "stop")
        assert stopped.stdout == f"stopped (pid {service.process.pid})\n"
        assert service.end()[0] == 0
    assert hermes("gateway", "status").returncode == 1


def test_only_the_service_on_the_port_is_stopped(environ: dict[str, str], hermes: Run) -> None:
    with Service(environ, "--port", "0") as one, Service(environ, "--port", "0") as other:
        told = json.loads(hermes("gateway", "status", "--json").stdout)["gateways"]
        ports = {gateway["pid"]: str(gateway["port"]) for gateway in told}
        assert set(ports) == {one.process.pid, other.process.pid}
        assert "--all" in hermes("gateway", "stop").stderr
        stopped = hermes("gateway", "stop", API_SERVER_PORT=ports[other.process.pid])
        assert stopped.stdout == f"stopped (pid {other.process.pid})\n"
        assert hermes("gateway", "stop", "--port", ports[other.process.pid]).returncode == 1
        assert one.process.poll() is None
        assert hermes("gateway", "stop", "--all").returncode == 0
        assert one.end()[0] == 0


def test_a_killed_service_is_not_running(environ: dict[str, str], hermes: Run) -> None:
    with Service(environ, "--port", "0") as service:
        os.kill(service.process.pid, signal.SIGKILL)
        service.end()
    assert json.loads(hermes("gateway", "status", "--json").stdout)["running"] is False


def test_a_second_service_for_the_same_home_and_port_is_refused(
    environ: dict[str, str], hermes: Run
) -> None:
    with Service(environ, "--port", "0") as service:
        told = json.loads(hermes("gateway", "status", "--json").stdout)
        twin = hermes("gateway", "run", "--port", str(told["port"]))
        assert twin.returncode == 1
        assert str(service.process.pid) in twin.stderr
        assert "hermes gateway stop" in twin.stderr
        assert twin.stderr.count("\n") == 1


def test_a_port_in_use_is_one_line(hermes: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = hermes("gateway", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert "in use" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_open_address_without_a_key_is_refused(hermes: Run) -> None:
    done = hermes("gateway", "--host", "0.0.0.0")
    assert done.returncode == 78
    assert "API_SERVER_KEY" in done.stderr


def test_a_running_turn_is_finished_before_the_end(
    environ: dict[str, str], model_url: str, until_asked: Callable[[str], None]
) -> None:
    with Service(environ, "--port", "0") as service:
        service.shown["curl"] = service.shown["curl"].replace('"Hi"', '"tokens:40 delay:0.05"')
        answers: list[str] = []
        asking = threading.Thread(target=lambda: answers.append(service.curl()))
        asking.start()
        until_asked(model_url)
        service.process.send_signal(signal.SIGTERM)
        asking.join(20)
        assert "[DONE]" in answers[0]
        assert '"finish_reason":"stop"' in answers[0]
        assert service.end()[0] == 0


def test_a_second_signal_does_not_wait(
    environ: dict[str, str], model_url: str, until_asked: Callable[[str], None]
) -> None:
    with Service(environ, "--port", "0") as service:
        service.shown["curl"] = service.shown["curl"].replace('"Hi"', '"hang"')
        asking = subprocess.Popen(["bash", "-c", service.shown["curl"]], stdout=subprocess.PIPE)
        until_asked(model_url)
        service.process.send_signal(signal.SIGINT)
        assert service.process.stderr
        assert any("stopping" in line for line in service.process.stderr)
        service.process.send_signal(signal.SIGINT)
        assert service.process.wait(5) == 1
        asking.communicate(timeout=10)


PLUGIN = """
import logging, sys
from pathlib import Path
from hermes.hookspecs import hookimpl
from hermes.testing.platforms import ChatServer, PlainAdapter, fake_platform
from hermes.types.agents import AgentHome
from hermes.types.platforms import WebhookRoute
from msgspec.structs import replace


async def receive(request, accept):
    raise AssertionError("nothing is delivered")


def make(account, config):
    logging.getLogger("chat").error("the second agent has the key gsk-of-the-second-agent")
    return PlainAdapter(ChatServer(), account)


def routes(config):
    webhook = WebhookRoute(method="POST", path="/webhooks/chat", handler=receive)
    return [webhook] if config.mode == "push" else []


@hookimpl
def register_platforms():
    chat = fake_platform("chat", ChatServer(), PlainAdapter)
    return [replace(chat, make=make, routes=routes)]


@hookimpl
def register_agents(home):
    return [AgentHome(id="second", home=home / "second")]
"""


@pytest.fixture
def plugged(environ: dict[str, str], home: Path, tmp_path: Path) -> dict[str, str]:
    """Installs and configures a plugin with a platform and a second agent."""
    site = tmp_path / "site"
    info = site / "chat_plugin-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "chat_plugin.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: chat_plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[hermes.plugins]\nchat_plugin = chat_plugin\n")
    (home / "second").mkdir(parents=True)
    (home / "second" / ".env").write_text("GROQ_API_KEY=gsk-of-the-second-agent\n")
    root = Path(__file__).parents[3]
    return {**environ, "CHAT_BOT_TOKEN": "t", "PYTHONPATH": f"{site}{os.pathsep}{root}"}


def test_with_everything_on_a_service_listens_on_this_machine_only_and_wants_its_key(
    plugged: dict[str, str], home: Path
) -> None:
    (home / "config.yaml").write_text("platforms: {chat: {mode: push}}\n")
    with Service(plugged, "--port", "0") as service:
        started = psutil.Process(service.process.pid)
        listening = [
            connection.laddr.ip
            for process in (started, *started.children(recursive=True))
            for connection in process.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        ]
        url = service.lines[0].rpartition(" ")[2]
        for path in ("/v1/models", "/v1/runs/run_1/events", "/v1/chat/completions"):
            with pytest.raises(HTTPError) as refused:
                urlopen(f"{url}{path}")
            with refused.value as answer:
                assert answer.code == 401
    assert listening == ["127.0.0.1"]


def test_webhooks_without_the_api_are_refused_at_the_start(
    hermes: Run, home: Path, plugged: dict[str, str]
) -> None:
    (home / "config.yaml").write_text("platforms: {chat: {mode: push}}\n")
    done = hermes("gateway", **{**plugged, "API_SERVER_ENABLED": "false"})
    assert done.returncode != 0
    assert "nothing can be delivered at /webhooks/chat" in done.stderr


def test_the_log_shows_no_secret_of_a_second_agent(plugged: dict[str, str]) -> None:
    with Service(plugged, "--port", "0") as service:
        service.process.send_signal(signal.SIGTERM)
        code, logged = service.end()
    assert code == 0
    assert "the second agent has the key" in logged
    assert "gsk-of-the-second-agent" not in logged
