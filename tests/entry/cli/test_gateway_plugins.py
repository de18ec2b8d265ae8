"""`hermes gateway` runs with a plugin that adds a platform and an agent."""

import json
import os
import signal
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import psutil
import pytest

from tests.entry.cli.conftest import Run, Service

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


def test_a_service_with_all_features_listens_on_this_machine_only_and_requires_its_key(
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


def accounts_of(hermes: Run, environ: dict[str, str]) -> list[dict[str, str]]:
    """Returns the chat accounts that `hermes gateway status` lists."""
    done = hermes("gateway", "status", "--json", **environ)
    found: list[dict[str, str]] = json.loads(done.stdout).get("accounts", [])
    return found


def until_state(hermes: Run, environ: dict[str, str], state: str) -> dict[str, str]:
    """Waits until the only account is in this state."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = accounts_of(hermes, environ)
        if found and found[0]["state"] == state:
            return found[0]
    raise AssertionError(f"the account was never {state}: {accounts_of(hermes, environ)}")


def test_a_second_gateway_with_the_same_credential_is_refused_and_takes_over_after_a_kill(
    plugged: dict[str, str], home: Path, tmp_path: Path, hermes: Run
) -> None:
    other = {**plugged, "HERMES_HOME": str(tmp_path / "other")}
    with Service(plugged, "--port", "0") as first:
        until_state(hermes, plugged, "connected")
        with Service(other, "--port", "0") as second:
            refused = until_state(hermes, other, "refused")
            holder = f"account chat of the gateway with the home {home} (pid {first.process.pid})"
            assert f"the credential of chat is used by {holder}" in refused["reason"]
            shown = hermes("gateway", "status", **other).stdout
            assert "\n  chat  refused since 2" in shown
            assert holder in shown
            with urlopen(f"{second.lines[0].rpartition(' ')[2]}/ready") as answer:
                ready = json.load(answer)
            assert (answer.status, ready["status"]) == (200, "degraded")
            assert [one["account"] for one in ready["down"]] == ["chat"]
            first.process.kill()
            until_state(hermes, other, "connected")
            second.process.send_signal(signal.SIGTERM)
            logged = second.end()[1]
    assert holder in logged


def test_the_log_shows_no_secret_of_a_second_agent(plugged: dict[str, str]) -> None:
    with Service(plugged, "--port", "0") as service:
        service.process.send_signal(signal.SIGTERM)
        code, logged = service.end()
    assert code == 0
    assert "the second agent has the key" in logged
    assert "gsk-of-the-second-agent" not in logged
