"""The command `hermes gateway` starts a service, and shows a new user how to get an answer."""

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
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil
import pytest

from hermes.settings import load
from hermes.testing.used_home import make_used_home
from tests.entry.cli.conftest import Run, Service


def test_the_first_start_leads_to_an_answer(environ: dict[str, str], home: Path) -> None:
    with Service(environ, "--port", "0") as service:
        key = (home / "api_server.key").read_text().strip()
        assert len(key) >= 32
        assert f"The API key is in {home}/api_server.key. In another terminal:" in service.lines
        assert all(key not in text for text in service.shown.values())
        assert "you said:" in service.answer()
        service.process.send_signal(signal.SIGTERM)
        code, logged = service.end()
    assert code == 0
    assert key not in logged
    assert stat.S_IMODE((home / "api_server.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    with Service(environ, "--port", "0"):
        assert (home / "api_server.key").read_text().strip() == key


def test_without_a_model_the_start_says_how_to_set_one(environ: dict[str, str]) -> None:
    bare = {**environ, "HERMES_CUSTOM_BASE_URL": "", "HERMES_MODEL": ""}
    with Service(bare, "--port", "0") as service:
        assert any("hermes config set model.base_url" in line for line in service.lines)


def test_a_first_question_is_answered_before_the_output_says_how_to_connect(
    environ: dict[str, str],
) -> None:
    with Service(environ, "--port", "0", "--embedded", "--hello", "good morning") as service:
        assert service.lines.index("asked: good morning") < service.lines.index(
            f"The API key is in {environ['HERMES_HOME']}/api_server.key. In another terminal:"
        )
        assert any("you said:" in line and "good morning" in line for line in service.lines)
        # A model is configured, so `--embedded` has no effect.
        assert service.shown["model"].startswith("fake (custom")


def test_no_log_line_appears_between_the_first_answer_and_the_next_output(
    environ: dict[str, str],
) -> None:
    asked = ("--hello", "tokens:20 delay:0.02")
    with Service(environ, "--port", "0", *asked, stderr=subprocess.STDOUT) as service:
        begun = service.lines.index("asked: tokens:20 delay:0.02")
        assert "you said:" in service.lines[begun + 1]
        assert service.lines[begun + 3].startswith("The API key is in")
        service.process.send_signal(signal.SIGTERM)
        assert service.process.stdout
        logged = [line for line in service.process.stdout if "turn_log" in line]
        assert logged
        assert all(line.startswith("20") for line in logged)


def test_a_first_question_that_fails_does_not_end_the_service(environ: dict[str, str]) -> None:
    with Service(environ, "--port", "0", "--hello", "status:400") as service:
        assert '"finish_reason":"stop"' in service.curl()
        service.process.send_signal(signal.SIGTERM)
        assert "told to fail" in service.end()[1]


@pytest.fixture
def offline(environ: dict[str, str]) -> dict[str, str]:
    """Returns an environment in which no model is configured and no package can be downloaded."""
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
        # The choice is saved in config.yaml, so `hermes chat` uses the same model.
        assert load(home, {}).model.provider == "local"
        asked = service.lines.index("asked: Hello! What can you do?")
        assert service.lines[asked + 1].split()
        assert '"finish_reason":"stop"' in service.curl()
        [child] = psutil.Process(service.process.pid).children()
        service.process.send_signal(number)
        service.end()
        psutil.wait_procs([child], 10)
        assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_without_a_network_one_sentence_says_why_the_embedded_model_is_missing(
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
    (home / ".env").write_text("DISCORD_BOT_TOKEN=123456:abc\n")
    before = digests(home)
    with Service(environ, "--port", "0") as service:
        assert "you said:" in service.answer()
        service.process.send_signal(signal.SIGTERM)
        code, logged = service.end()
    assert code == 0
    assert {name: digest for name, digest in digests(home).items() if name in before} == before
    assert len([*service.lines, *logged.splitlines()]) <= 15
    (found,) = (line for line in logged.splitlines() if "that is not used" in line)
    assert found.endswith("3 sessions, 2 cron jobs, 1 skill, tokens for discord")
    assert "keys are ignored; `hermes config check` lists them" in logged
    assert "agent main runs commands on this machine" in logged


def test_config_check_lists_every_ignored_key(
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


def test_the_log_in_the_home_has_lines_about_a_message_a_turn_and_a_wrong_key(
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
        again = hermes("gateway", "stop", "--port", ports[other.process.pid])
        assert again.returncode == 1
        assert f"runs on port {ports[other.process.pid]}. Choose another" in again.stderr
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
        assert "--port or API_SERVER_PORT chooses another port" in twin.stderr
        assert twin.stderr.count("\n") == 1


def test_a_port_in_use_is_one_line(hermes: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = hermes("gateway", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert "in use" in done.stderr
    assert done.stderr.count("\n") == 1


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
