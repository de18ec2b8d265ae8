"""Configurations of Hermes Agent are read, and errors in our own configuration are reported."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from hermes.settings import Settings, load
from hermes.settings.sources import ConfigProblems
from hermes.testing.configured import models_of
from hermes.types.errors import ConfigError

KEY = "Qv7rXt2LmB9sKd4wZn6c"


def settings(
    home: Path, config: str = "", dotenv: str = "", environ: Mapping[str, str] | None = None
) -> Settings:
    if config:
        (home / "config.yaml").write_text(config, encoding="utf-8")
    if dotenv:
        (home / ".env").write_text(dotenv, encoding="utf-8")
    return load(home, environ or {})


def problems(home: Path, config: str = "", environ: Mapping[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigProblems) as caught:
        settings(home, config, environ=environ)
    return list(caught.value.problems)


FOREIGN = """\
_config_version: 33
model:
  default: some-model
  provider: custom
  base_url: http://127.0.0.1:9/v1
  api_key: sk-local-0123456789
  ollama_num_ctx: 4096
terminal: {backend: docker}
browser: {}
compression: {enabled: true}
tts: {provider: edge}
mcp_servers: {github: {command: npx}}
agent: {max_turns: 30, gateway_timeout: 600, restart_drain_timeout: 5, verify_on_stop: auto}
display: {busy_input_mode: interrupt, tool_progress: all}
gateway: {api_server: {max_concurrent_runs: 7}, strict: false, streaming: {edit_interval: 2}}
platforms:
  telegram: {enabled: true, token: '123:abcdefgh', extra: {}}
  api_server: {extra: {port: 9001}}
a_key_of_tomorrow: {x: 1}
timezone: ''
max_concurrent_sessions: null
"""


def test_a_hermes_agent_configuration_is_accepted_unchanged(tmp_path: Path) -> None:
    dotenv = f"API_SERVER_ENABLED=true\nAPI_SERVER_KEY={KEY}\nAPI_SERVER_HOST=0.0.0.0\n"
    found = settings(tmp_path, FOREIGN, dotenv)
    assert found.agent.max_turns == 30
    assert found.agent.turn_timeout == 600
    assert found.agent.drain_seconds == 5
    assert found.api_server.max_concurrent_runs == 7
    assert found.api_server.port == 9001
    assert found.streaming.edit_interval == 2
    choice = models_of(found).main()
    assert choice is not None
    assert (choice.provider, choice.model) == ("custom", "some-model")
    assert choice.api_key == "sk-local-0123456789"
    assert found.terminal.backend == "docker"
    assert found.display.busy_input_mode == "interrupt"
    ignored = found.sources.ignored
    assert "config.yaml: a_key_of_tomorrow is not known and is ignored" in ignored
    assert sum("agent.verify_on_stop" in line for line in ignored) == 1


def test_a_misspelt_key_in_a_hermes_agent_configuration_is_an_error(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "_config_version: 33\nagent:\n  max_turn: 3\n")
    assert "did you mean 'agent.max_turns'" in problem


@pytest.mark.parametrize("name", ["telegram", "line", "email", "teams", "webhook", "irc", "sms"])
def test_an_unknown_section_is_ignored_and_reported(tmp_path: Path, name: str) -> None:
    found = settings(tmp_path, f"{name}: {{require_mention: true}}\n")
    assert found.sources.ignored == (f"config.yaml: {name} is not known and is ignored",)
    assert found.warnings == ()
    (problem,) = problems(tmp_path, f"{name}: true\n")
    assert "unknown key" in problem


@pytest.mark.parametrize(
    ("config", "place", "meant"),
    [
        ("modle: x\n", "line 1", "model"),
        ("agent:\n  max_turn: 3\n", "line 2", "agent.max_turns"),
        ("api_server:\n\n  prot: 3\n", "line 3", "api_server.port"),
        ("max_turns: 3\n", "line 1", "agent.max_turns"),
        ("terminl: {}\n", "line 1", "terminal"),
    ],
)
def test_the_error_for_a_misspelt_key_names_the_file_the_line_and_the_nearest_key(
    tmp_path: Path, config: str, place: str, meant: str
) -> None:
    (problem,) = problems(tmp_path, config)
    assert f"{tmp_path / 'config.yaml'} {place}: unknown key" in problem
    assert f"did you mean {meant!r}?" in problem


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("api_server: {port: many}", "expected a whole number from 0 to 65535, found 'many'"),
        ("api_server: {port: 70000}", "expected a whole number from 0 to 65535, found 70000"),
        ("api_server: {enabled: maybe}", "expected true or false, found 'maybe'"),
        ("agent: {max_turns: true}", "expected a whole number from 1, found true"),
        ("agent: {system_prompt: [a]}", "expected text, found a list"),
        ("agent: {turn_timeout: {a: 1}}", "expected a number from 0, found a mapping"),
        ("model: 4", "expected text, found 4"),
        ("model: {api_key: 12345678}", "expected text, found something else"),
        ("streaming: {first: last}", "expected one of text, placeholder, found 'last'"),
        ("access: {allowed_users: {a: b}}", "expected a list of words, found a mapping"),
        ("model: {context_length: big}", "expected a whole number from 1, found 'big'"),
        ("agent: 3", "agent must be a mapping of settings"),
        ("workspace: 2024-01-01", "expected a path, found a date"),
    ],
)
def test_the_error_for_a_wrong_type_says_what_was_expected_and_found(
    tmp_path: Path, config: str, expected: str
) -> None:
    (problem,) = problems(tmp_path, config)
    assert expected in problem


def test_the_error_names_a_wrong_variable(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, environ={"API_SERVER_PORT": "http"})
    assert problem.startswith("environment API_SERVER_PORT: api_server.port: expected")


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    config = "modle: x\nagent: {max_turns: 0}\ntimezone: Mars/Base\n"
    assert len(problems(tmp_path, config)) == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model: x\nagent: [1\n", "line 3"),
        ("model: x\n\tagent: 1\n", "line 2: there is a tab; YAML is indented with spaces"),
        ("agent:\n\tmax_turns: 3\n", "line 2: there is a tab; YAML is indented with spaces"),
        ("agent:\n  \tmax_turns: 3\n", "line 2: there is a tab"),
        ("- a\n- b\n", "must be a mapping"),
        ("model: \x01", "config.yaml"),
    ],
)
def test_the_error_of_invalid_yaml_names_the_line(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        settings(tmp_path, text)


def test_a_file_that_is_not_text_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"config\.yaml can't be read"):
        load(tmp_path, {})


def test_a_duplicate_key_gives_a_warning(tmp_path: Path) -> None:
    found = settings(tmp_path, "model: a\nmodel: b\n")
    assert found.model.default == "b"
    assert "model (lines 1 and 2) is given twice" in found.warnings[0]


def test_the_mode_of_a_chat_must_be_known(tmp_path: Path) -> None:
    text = "platforms: {telegram: {busy_input_modes: {7: steer, 8: wait}}}"
    (problem,) = problems(tmp_path, text)
    assert problem == (
        "platforms.telegram.busy_input_modes: 'wait' is no mode: use one of queue, steer, interrupt"
    )
    found = settings(tmp_path, text.replace("wait", "queue"))
    assert found.platforms["telegram"].busy_input_modes == {"7": "steer", "8": "queue"}
