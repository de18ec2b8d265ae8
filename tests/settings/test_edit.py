"""Changes to the configuration are checked before they are written, and comments are kept."""

import stat
from pathlib import Path

import pytest

from hermes.settings import load
from hermes.settings.edit import Change, migrate, set_value, unset_value
from hermes.testing.configured import models_of
from hermes.types.errors import ConfigError

KEY = "Qv7rXt2LmB9sKd4wZn6c"
OLD = "model: m # the one\nbase_url: http://x/v1\napi_key: sk-0123456789\n"


def change(home: Path, key: str, value: str, **environ: str) -> Change:
    return set_value(key, value, home, environ)


@pytest.mark.parametrize(
    ("before", "key", "value", "after"),
    [
        ("", "model.default", "m", "model:\n  default: m\n"),
        ("# mine\nmodel: a # old\n", "model.default", "m", "# mine\nmodel: m # old\n"),
        ("agent:\n  # n\n  max_turns: 3\n", "agent.max_turns", "4",
         "agent:\n  # n\n  max_turns: 4\n"),
        ("agent:\n  max_turns: 3", "timezone", "UTC", "agent:\n  max_turns: 3\ntimezone: UTC\n"),
        (
            "agent:\n    max_turns: 3 # few\n",
            "agent.drain_seconds",
            "1.5",
            "agent:\n    drain_seconds: 1.5\n    max_turns: 3 # few\n",
        ),
        ("agent: {max_turns: 3} # x\n", "agent.max_turns", "4", "agent: {max_turns: 4} # x\n"),
        ("# only words\n", "logging.level", "debug", "# only words\nlogging:\n  level: DEBUG\n"),
        ("platforms:\n  irc:\n    enabled: no\n", "platforms.irc.allowed_users", "1,b",
         "platforms:\n  irc:\n    allowed_users: ['1', b]\n    enabled: no\n"),
        ("agent:\n  gateway_timeout: 3\n", "agent.turn_timeout", "4",
         "agent:\n  turn_timeout: 4.0\n  gateway_timeout: 3\n"),
        ("agent:\n  system_prompt: 'a'\n", "agent.system_prompt", "b: #c",
         "agent:\n  system_prompt: 'b: #c'\n"),
    ],
)  # fmt: skip
def test_a_change_keeps_the_rest_of_the_file(
    tmp_path: Path, before: str, key: str, value: str, after: str
) -> None:
    (tmp_path / "config.yaml").write_text(before, encoding="utf-8")
    done = change(tmp_path, key, value)
    assert (tmp_path / "config.yaml").read_text(encoding="utf-8") == after
    assert done.backup is None
    load(tmp_path, {})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("model: a # c\n", "model:   # c\n  default: a\n  base_url: http://x/v1\n"),
        ("model: # c\n", "model: # c\n  base_url: http://x/v1\n"),
        ("model: {}\n", "model:\n  base_url: http://x/v1\n"),
        ("model:\n  base_url:\n    - x\n# c\n", "model:\n  base_url: http://x/v1\n# c\n"),
    ],
)
def test_a_change_of_the_layout_keeps_comments(tmp_path: Path, before: str, after: str) -> None:
    (tmp_path / "config.yaml").write_text(before, encoding="utf-8")
    done = change(tmp_path, "model.base_url", "http://x/v1")
    assert (tmp_path / "config.yaml").read_text(encoding="utf-8") == after
    assert done.backup is None


@pytest.mark.parametrize(
    "before",
    [
        "model:\n  base_url:\n    - x # c\n",
        "x: &x {default: a} # c\nmodel: *x\n",
        "model: {}\nmodel: {default: b} # c\n",
    ],
)
def test_a_change_that_can_not_keep_comments_keeps_a_backup(tmp_path: Path, before: str) -> None:
    (tmp_path / "config.yaml").write_text(f"_config_version: 33\n{before}", encoding="utf-8")
    done = change(tmp_path, "model.base_url", "http://x/v1")
    assert load(tmp_path, {}).model.base_url == "http://x/v1"
    assert done.backup is not None
    assert done.backup.name.startswith("config.yaml.bak-33-")
    assert done.backup.read_text(encoding="utf-8") == f"_config_version: 33\n{before}"


def test_a_change_of_a_short_model_setting_keeps_the_name_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("model: a\n", encoding="utf-8")
    change(tmp_path, "model.base_url", "http://x/v1")
    assert load(tmp_path, {}).model.default == "a"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("api_server.port", "x"),
        ("api_server.host", "0.0.0.0"),
        ("timezone", "Mars"),
        ("api_server.key", "short"),
        ("model.api_key", "sk-x"),
        ("api_server.prot", "1"),
        ("timezone", "${NO_SUCH}"),
        ("display.busy_input_mode", "wait"),
    ],
)
def test_an_invalid_change_writes_nothing(tmp_path: Path, key: str, value: str) -> None:
    with pytest.raises(ConfigError):
        change(tmp_path, key, value)
    assert list(tmp_path.iterdir()) == []


def test_an_invalid_setting_can_be_corrected(tmp_path: Path) -> None:
    broken = "api_server:\n  port: x\nagent:\n  max_turns: y\n"
    (tmp_path / "config.yaml").write_text(broken, encoding="utf-8")
    change(tmp_path, "api_server.port", "1")
    change(tmp_path, "agent.max_turns", "2")
    assert load(tmp_path, {}).api_server.port == 1


def test_a_secret_is_written_to_dotenv_which_only_the_owner_can_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\nexport API_SERVER_KEY=old\nB=2", encoding="utf-8")
    done = change(tmp_path, "api_server.key", KEY)
    assert (done.name, done.path) == ("API_SERVER_KEY", tmp_path / ".env")
    text = (tmp_path / ".env").read_text(encoding="utf-8")
    assert text == f"A=1\nAPI_SERVER_KEY={KEY}\nB=2"
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == 0o600
    assert not (tmp_path / "config.yaml").exists()


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("{base_url: 'http://x'}", "HERMES_CUSTOM_API_KEY"),
        ("{provider: groq}", "GROQ_API_KEY"),
        ("{provider: ollama}", "HERMES_CUSTOM_API_KEY"),
    ],
)
def test_a_model_key_is_written_to_the_variable_of_its_provider(
    tmp_path: Path, model: str, name: str
) -> None:
    (tmp_path / "config.yaml").write_text(f"model: {model}\n", encoding="utf-8")
    assert change(tmp_path, "model.api_key", "a 'key'").name == name
    assert load(tmp_path, {}).sources.environ[name] == "a 'key'"


def test_a_variable_of_a_provider_can_be_set_by_its_name(tmp_path: Path) -> None:
    change(tmp_path, "OPENAI_API_KEY", "sk-1")
    change(tmp_path, "GROQ_API_KEY", "gsk-1")
    choice = models_of(load(tmp_path, {})).main()
    assert choice is not None
    assert (choice.provider, choice.api_key) == ("openai", "sk-1")


@pytest.mark.parametrize(
    ("name", "value"),
    [("TAVILY_API_KEY", "tvly-1"), ("BRAVE_API_KEY", "b"), ("OLLAMA_BASE_URL", "http://h/v1"),
     ("API_SERVER_PORT", "9000"), ("IRC_ALLOWED_USERS", "1,b")],
)  # fmt: skip
def test_every_variable_can_be_set_by_its_name(tmp_path: Path, name: str, value: str) -> None:
    done = change(tmp_path, name, value)
    assert (done.name, done.path, done.overruled_by) == (name, tmp_path / ".env", "")
    assert load(tmp_path, {}).sources.dotenv == {name: value}
    assert not (tmp_path / "config.yaml").exists()


def test_a_variable_is_checked_like_its_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a whole number"):
        change(tmp_path, "API_SERVER_PORT", "x")
    assert list(tmp_path.iterdir()) == []


def test_the_change_of_a_variable_names_the_source_that_overrides_it(tmp_path: Path) -> None:
    assert change(tmp_path, "GROQ_API_KEY", "k", GROQ_API_KEY="other").overruled_by == (
        "environment GROQ_API_KEY"
    )
    change(tmp_path, "BRAVE_SEARCH_API_KEY", "a")
    stronger = f"{tmp_path / '.env'} BRAVE_SEARCH_API_KEY"
    assert change(tmp_path, "BRAVE_API_KEY", "b").overruled_by == stronger


@pytest.mark.parametrize(
    "value", ["groq/a, ollama/b", "[groq/a, ollama/b]", '["groq/a","ollama/b"]']
)
def test_a_list_may_have_brackets(tmp_path: Path, value: str) -> None:
    change(tmp_path, "model.fallbacks", value)
    assert load(tmp_path, {}).model.fallbacks == ("groq/a", "ollama/b")


@pytest.mark.parametrize("value", ["[a], [b]", "[{a: b}]", "[a, [b]]"])
def test_brackets_without_a_valid_list_are_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError, match=r"model\.fallbacks: expected a list of words"):
        change(tmp_path, "model.fallbacks", value)


@pytest.mark.parametrize(
    ("before", "key", "after", "kept"),
    [
        ("# a\nagent:\n  max_turns: 3\n  drain_seconds: 4 # long\n", "agent.max_turns",
         "# a\nagent:\n  drain_seconds: 4 # long\n", True),
        ("# a\nagent:\n  max_turns: 3\ntimezone: UTC", "agent.max_turns",
         "# a\ntimezone: UTC", True),
        ("agent:\n  # few\n  max_turns: 3\n", "agent.max_turns", "", False),
        ("model: a\ntimezone: UTC\n", "model", "timezone: UTC\n", True),
        ("model:\n  default: a\n  provider: groq\n", "model", "model:\n  provider: groq\n", True),
        ("model:\n  model: a\n  default: b\n  provider: groq\n", "model.default",
         "model:\n  provider: groq\n", True),
        ("model:\n  fallbacks:\n    - a/b\n    - c/d\n# next\ntimezone: UTC\n", "model.fallbacks",
         "# next\ntimezone: UTC\n", True),
        ("agent:\n  system_prompt: |\n    a\n    b\n\n# c\ntimezone: UTC\n", "agent.system_prompt",
         "# c\ntimezone: UTC\n", True),
        ("agent: {max_turns: 3, drain_seconds: 4} # x\n", "agent.max_turns",
         "agent: {drain_seconds: 4}               # x\n", True),
        ("platforms:\n  irc:\n    channel_prompts:\n      a: b\n",
         "platforms.irc.channel_prompts", "", True),
    ],
)  # fmt: skip
def test_a_setting_can_be_removed_and_the_rest_of_the_file_stays(
    tmp_path: Path, before: str, key: str, after: str, kept: bool
) -> None:
    (tmp_path / "config.yaml").write_text(before, encoding="utf-8")
    (done,) = unset_value(key, tmp_path, {})
    assert (tmp_path / "config.yaml").read_text(encoding="utf-8") == after
    assert (done.backup is None) == kept
    if done.backup:
        assert done.backup.read_text(encoding="utf-8") == before
    assert load(tmp_path, {}).explain(key).source == "default"


def test_a_setting_is_removed_from_both_files(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("model: a\n", encoding="utf-8")
    (tmp_path / ".env").write_text("# x\nexport HERMES_MODEL=b\nB=2\n", encoding="utf-8")
    done = unset_value("model.default", tmp_path, {"HERMES_MODEL": "c"})
    assert [one.path.name for one in done] == ["config.yaml", ".env"]
    assert done[-1].overruled_by == "environment HERMES_MODEL"
    assert (tmp_path / ".env").read_text(encoding="utf-8") == "# x\nB=2\n"
    assert load(tmp_path, {}).model.default == ""


def test_a_variable_is_removed_only_from_dotenv(tmp_path: Path) -> None:
    text = "timezone: UTC\n"
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    change(tmp_path, "HERMES_TIMEZONE", "Europe/Berlin")
    (done,) = unset_value("HERMES_TIMEZONE", tmp_path, {})
    assert done.overruled_by == f"{tmp_path / 'config.yaml'} line 1"
    assert (tmp_path / "config.yaml").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("key", ["timezone", "agent.max_turns", "GROQ_API_KEY", "no.such"])
def test_a_setting_that_is_not_set_can_not_be_removed(tmp_path: Path, key: str) -> None:
    (tmp_path / "config.yaml").write_text("agent: {}\nmodel:\n", encoding="utf-8")
    with pytest.raises(ConfigError):
        unset_value(key, tmp_path, {})
    assert (tmp_path / "config.yaml").read_text(encoding="utf-8") == "agent: {}\nmodel:\n"


def test_a_setting_that_protects_the_api_can_not_be_removed(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("api_server: {host: 0.0.0.0}\n", encoding="utf-8")
    (tmp_path / ".env").write_text(f"API_SERVER_KEY={KEY}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="open to others"):
        unset_value("api_server.key", tmp_path, {})
    assert load(tmp_path, {}).api_server.key == KEY


@pytest.mark.parametrize("value", ["a\nB=1", "a'\""])
def test_a_secret_that_dotenv_can_not_hold_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError, match="can't hold"):
        change(tmp_path, "OPENAI_API_KEY", value)


def test_a_change_names_the_source_that_overrides_it(tmp_path: Path) -> None:
    done = change(tmp_path, "model", "m", HERMES_MODEL="other")
    assert done.overruled_by == "environment HERMES_MODEL"
    (tmp_path / ".env").write_text("HERMES_MODEL=b\n", encoding="utf-8")
    assert change(tmp_path, "model", "n").overruled_by == f"{tmp_path / '.env'} HERMES_MODEL"


def test_an_older_file_is_migrated_in_memory_and_not_changed(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(OLD, encoding="utf-8")
    found = load(tmp_path, {})
    assert found.model.default == "m"
    assert found.model.base_url == "http://x/v1"
    assert "hermes config migrate" in found.warnings[0]
    assert (tmp_path / "config.yaml").read_text(encoding="utf-8") == OLD


def test_a_migration_keeps_a_backup_and_runs_once(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(OLD, encoding="utf-8")
    backup = migrate(tmp_path, {})
    assert backup is not None
    assert backup.name.startswith("config.yaml.bak-0-")
    assert backup.read_text(encoding="utf-8") == OLD
    found = load(tmp_path, {})
    assert found.model.api_key == "sk-0123456789"
    assert found.warnings == ()
    assert migrate(tmp_path, {}) is None


def test_a_change_to_an_older_file_migrates_it(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(OLD, encoding="utf-8")
    assert change(tmp_path, "timezone", "UTC").backup is not None
    found = load(tmp_path, {})
    assert (found.model.base_url, found.timezone) == ("http://x/v1", "UTC")


@pytest.mark.parametrize("version", ["1", "33", "-2", "'x'"])
def test_any_version_can_be_read(tmp_path: Path, version: str) -> None:
    text = f"_config_version: {version}\nmodel: m\n"
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    assert load(tmp_path, {}).model.default == "m"
