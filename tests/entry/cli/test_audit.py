"""The command `hermes audit`."""

import json
from pathlib import Path

from click.testing import CliRunner, Result
from msgspec.structs import replace

from hermes.app.application import Application
from hermes.control.audit import AuditTrail
from hermes.entry.cli.audit import lines_of
from hermes.entry.cli.main import cli
from hermes.state.audit import (
    AuditedDelivery,
    AuditedMessage,
    AuditedModelCall,
    AuditedToolCall,
    AuditedTurn,
)

MESSAGE = AuditedMessage(
    id="m1",
    dedupe_key="telegram:7:9",
    session="agent:main:telegram:private:7",
    agent="main",
    person=None,
    account="telegram",
    chat_id="7",
    user_id="7",
    state="done",
    turn="m1",
    received_at=0.0,
)
TURN = AuditedTurn(
    id="m1",
    session=MESSAGE.session,
    agent="main",
    person=None,
    account="telegram",
    chat_id="7",
    state="failed",
    trigger_kind="message",
    steps=1,
    stop_requested="telegram:7",
    code="x",
    reason="It broke.",
    prompt_tokens=10,
    completion_tokens=None,
    cost=0.25,
    started_at=0.0,
    finished_at=2.0,
)
TOOL = AuditedToolCall(
    id="c1",
    name="terminal",
    arguments="x" * 300,
    started_at=1.0,
    finished_at=None,
    failed=None,
    decisions=(),
)
DELIVERY = AuditedDelivery(
    id="d1",
    account="telegram",
    chat_id="7",
    thread_id=None,
    state="dead",
    attempts=5,
    error="the chat is gone",
    created_at=1.0,
    finished_at=None,
    receipts=(),
)


def hermes(home: Path, model_url: str, *args: str) -> Result:
    environ = {
        "HERMES_HOME": str(home),
        "HERMES_CUSTOM_BASE_URL": model_url,
        "HERMES_MODEL": "fake",
    }
    return CliRunner(env=environ).invoke(cli, args, obj=Application())


def test_a_message_of_the_terminal_is_traced(tmp_path: Path, model_url: str) -> None:
    assert hermes(tmp_path, model_url, "chat", "-s", "s", "-q", "hi").exit_code == 0
    log = json.loads(
        hermes(tmp_path, model_url, "sessions", "show", "s", "--json").stdout.splitlines()[0]
    )
    turn = log["turn"]
    shown = hermes(tmp_path, model_url, "audit", turn).stdout.splitlines()
    assert "person    owner" in shown
    assert "session   agent:main:cli:private:s" in shown
    assert any(line.startswith(f"turn      {turn}, completed in ") for line in shown)
    trail = json.loads(hermes(tmp_path, model_url, "audit", turn, "--json").stdout)
    assert trail["turn"]["id"] == turn
    assert trail["messages"][0]["person"] == "owner"
    unknown = hermes(tmp_path, model_url, "audit", "nothing")
    assert unknown.exit_code == 2
    assert unknown.stderr.startswith("there is no message or turn 'nothing'")


def test_a_failed_turn_says_who_stopped_it_and_why_it_failed() -> None:
    call = AuditedModelCall(step=0, at=1.0, text="a", calls=(TOOL,))
    trail = AuditTrail(messages=(), turn=TURN, model_calls=(call,), deliveries=(DELIVERY,))
    lines = list(lines_of(trail))
    assert lines[:5] == [
        "agent     main",
        "session   agent:main:telegram:private:7",
        "turn      m1, failed in 2.0 s: 1 step, 10 tokens in, 0 out, $0.2500",
        "stopped   by telegram:7",
        "reason    It broke.",
    ]
    assert lines[5].endswith("  step 1: 1 character, 1 tool call")
    assert lines[6] == f"tool      terminal {'x' * 200}…: no result"
    assert lines[7] == ("delivery  d1 to chat 7 of telegram: dead, 5 attempts: the chat is gone")


def test_a_message_without_a_turn_says_so() -> None:
    trail = AuditTrail(messages=(replace(MESSAGE, turn=None, state="pending"),), turn=None)
    lines = list(lines_of(trail))
    assert lines[0] == "message   m1 (telegram:7:9), pending"
    assert lines[2] == "person    unknown"
    assert lines[-1] == "turn      none: the message is a command, or it still waits"
