"""The command `hermes config` shows, changes and checks settings."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hermes.core.models.catalog import Catalog
from hermes.entry.cli.config import config
from hermes.entry.platforms.telegram.manifest import TELEGRAM
from hermes.settings import Settings, schema
from hermes.settings.platforms import platform_fields
from hermes.testing.configured import models_of
from hermes.types.deployment import RunningGateway
from hermes.types.errors import ConfigError, HermesError
from hermes.types.offers import ModelResolver
from hermes.types.platforms import AnyPlatform
from tests.entry.cli.conftest import Run

KEY = "Qv7rXt2LmB9sKd4wZn6c"


class FakeRuntime:
    """A fake of the application, which the commands call. Its check of the settings succeeds, or
    raises `error`."""

    def __init__(self, error: HermesError | None = None) -> None:
        self.error = error

    def models(self, settings: Settings) -> ModelResolver:
        return models_of(settings)

    def platforms(self) -> Sequence[AnyPlatform]:
        return [TELEGRAM]

    def running_gateways(self, run: Path) -> list[RunningGateway]:
        return [RunningGateway(pid=1, port=8642)] if run.exists() else []

    def unused_data(self, settings: Settings) -> str:
        return "3 skills" if (settings.home.root / "skills").exists() else ""

    async def check(self, _settings: Settings) -> tuple[str, ...]:
        if self.error:
            raise self.error
        return ()


def hermes(home: Path, *args: str, runtime: FakeRuntime | None = None, **environ: str) -> Result:
    names = {name for field in schema().fields.values() for name in field.aliases.env}
    names |= {name for one in Catalog.load().providers for name in (*one.keys, *one.base_url_env)}
    names |= {name for one in platform_fields(TELEGRAM) for name in one.variables}
    clean: dict[str, str | None] = dict.fromkeys(names)
    runner = CliRunner(env={**clean, "HERMES_HOME": str(home), **environ})
    return runner.invoke(config, args, obj=runtime or FakeRuntime())


def test_show_lists_the_settings_and_masks_secrets(tmp_path: Path) -> None:
    shown = hermes(tmp_path, "show", API_SERVER_KEY=KEY)
    assert shown.exit_code == 0
    assert "api_server.port = 8642" in shown.stdout
    assert "api_server.enabled = true" in shown.stdout
    assert "platforms.telegram" not in shown.stdout
    assert KEY not in shown.stdout


def test_show_can_print_json(tmp_path: Path) -> None:
    shown = hermes(tmp_path, "show", "--json", API_SERVER_KEY=KEY, TELEGRAM_ALLOWED_USERS="1,2")
    values = json.loads(shown.stdout)
    assert values["api_server.port"] == 8642
    assert values["platforms.telegram.allowed_users"] == ["1", "2"]
    assert values["workspace"] == str(tmp_path / "workspace")
    assert KEY not in shown.stdout


def test_get_prints_one_value(tmp_path: Path) -> None:
    assert hermes(tmp_path, "get", "agent.max_turns").stdout == "90\n"
    assert hermes(tmp_path, "get", "model", HERMES_MODEL="m").stdout == "m\n"
    listed = hermes(tmp_path, "get", "access.allowed_users", GATEWAY_ALLOWED_USERS="a, b")
    assert listed.stdout == "a,b\n"
    assert KEY not in hermes(tmp_path, "get", "api_server.key", API_SERVER_KEY=KEY).output


def test_set_writes_and_get_reads(tmp_path: Path) -> None:
    done = hermes(tmp_path, "set", "model.default", "gpt-x")
    assert done.stdout == f"model.default is set in {tmp_path / 'config.yaml'}\n"
    assert hermes(tmp_path, "get", "model.default").stdout == "gpt-x\n"


def test_variables_are_set_read_and_explained_by_their_names(tmp_path: Path) -> None:
    done = hermes(tmp_path, "set", "BRAVE_SEARCH_API_KEY", KEY)
    assert done.stdout == f"BRAVE_SEARCH_API_KEY is set in {tmp_path / '.env'}\n"
    hermes(tmp_path, "set", "OPENROUTER_API_KEY", KEY)
    masked = hermes(tmp_path, "get", "web.brave_key").stdout
    assert masked.strip()
    assert KEY not in masked
    assert hermes(tmp_path, "get", "BRAVE_API_KEY").stdout == masked
    assert hermes(tmp_path, "get", "OPENROUTER_API_KEY").stdout == masked
    told = hermes(tmp_path, "explain", "API_SERVER_PORT").stdout
    assert told == "api_server.port = 8642  (default)\n"
    told = hermes(tmp_path, "explain", "OPENROUTER_API_KEY").stdout
    assert told.endswith(f"({tmp_path / '.env'} OPENROUTER_API_KEY)\n")
    assert KEY not in told
    told = hermes(tmp_path, "explain", "OLLAMA_BASE_URL", OLLAMA_BASE_URL="http://h/v1").stdout
    assert told == "OLLAMA_BASE_URL = http://h/v1  (environment OLLAMA_BASE_URL)\n"
    assert hermes(tmp_path, "explain", "GROQ_API_KEY").stdout == (
        "GROQ_API_KEY = nothing  (default)\n"
    )


def test_the_token_of_a_platform_is_set_shown_explained_and_removed(tmp_path: Path) -> None:
    dotenv, token = tmp_path / ".env", "110201543:a-token-for-tests"
    for name in ("TELEGRAM_BOT_TOKEN", "platforms.telegram.token"):
        done = hermes(tmp_path, "set", name, token)
        assert done.stdout == f"TELEGRAM_BOT_TOKEN is set in {dotenv}\n"
        assert f"TELEGRAM_BOT_TOKEN={token}\n" in dotenv.read_text()
        told = hermes(tmp_path, "explain", name).stdout
        assert told.startswith("platforms.telegram.token = ")
        assert f"({dotenv} TELEGRAM_BOT_TOKEN)" in told
        shown = hermes(tmp_path, "show").stdout
        assert "platforms.telegram.token = " in shown
        masked = hermes(tmp_path, "get", name).stdout
        assert token not in told + shown + masked
        assert hermes(tmp_path, "get", name, "--reveal").stdout == f"{token}\n"
        done = hermes(tmp_path, "unset", name)
        assert done.stdout.endswith(f" is removed from {dotenv}\n")
    assert "platforms.telegram" not in hermes(tmp_path, "show").stdout


def test_a_setting_of_a_platform_is_written_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("platforms:\n  telegram:  # ours\n    enabled: true\n")
    url = "https://bot.example.org"
    done = hermes(tmp_path, "set", "platforms.telegram.webhook_url", url)
    assert done.stdout == f"platforms.telegram.webhook_url is set in {tmp_path / 'config.yaml'}\n"
    assert hermes(tmp_path, "get", "TELEGRAM_WEBHOOK_URL").stdout == f"{url}\n"
    assert "# ours" in (tmp_path / "config.yaml").read_text()
    told = hermes(
        tmp_path, "explain", "platforms.telegram.webhook_url", TELEGRAM_WEBHOOK_URL="https://b"
    )
    assert told.stdout.splitlines() == [
        "platforms.telegram.webhook_url = https://b  (environment TELEGRAM_WEBHOOK_URL)",
        f"  instead of {url}  ({tmp_path / 'config.yaml'} line 3)",
        "  instead of nothing  (default)",
    ]
    done = hermes(tmp_path, "unset", "platforms.telegram.webhook_url")
    assert done.exit_code == 0
    assert "webhook_url" not in (tmp_path / "config.yaml").read_text()


def test_the_tokens_of_several_bots_are_not_shown(tmp_path: Path) -> None:
    config = "platforms: {telegram: {accounts: {support: {token: '100:very-secret'}}}}\n"
    (tmp_path / "config.yaml").write_text(config)
    assert hermes(tmp_path, "get", "platforms.telegram.accounts").stdout == "support\n"
    assert "very-secret" not in hermes(tmp_path, "show").stdout


def test_a_broken_plugin_does_not_keep_people_from_changing_other_settings(
    tmp_path: Path,
) -> None:
    class Broken(FakeRuntime):
        def platforms(self) -> Sequence[AnyPlatform]:
            raise ConfigError("the plugin 'chat' can't be loaded")

    for key, value in (("timezone", "Europe/Berlin"), ("GROQ_API_KEY", KEY)):
        assert hermes(tmp_path, "set", key, value, runtime=Broken()).exit_code == 0
        assert hermes(tmp_path, "get", key, runtime=Broken()).exit_code == 0
        assert hermes(tmp_path, "unset", key, runtime=Broken()).exit_code == 0
    failed = hermes(tmp_path, "get", "platforms.telegram.token", runtime=Broken())
    assert (failed.exit_code, failed.stderr) == (2, "the plugin 'chat' can't be loaded\n")


def test_unset_says_what_was_removed_and_which_source_still_sets_the_value(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("model: a # comment\n", encoding="utf-8")
    done = hermes(tmp_path, "unset", "model", HERMES_MODEL="b")
    first, second = done.stdout.splitlines()
    assert first == f"model.default is removed from {tmp_path / 'config.yaml'}"
    assert second.startswith("comments were not kept: the original file is ")
    assert done.stderr == "note: environment HERMES_MODEL still sets it\n"


def test_a_value_may_be_a_negative_number(tmp_path: Path) -> None:
    failed = hermes(tmp_path, "set", "agent.drain_seconds", "-5")
    assert failed.stderr == "agent.drain_seconds: expected a number from 0, found '-5'\n"
    assert hermes(tmp_path, "set", "agent.system_prompt", "-q").exit_code == 0
    assert hermes(tmp_path, "get", "agent.system_prompt").stdout == "-q\n"


def test_set_says_that_a_secret_went_into_dotenv(tmp_path: Path) -> None:
    done = hermes(tmp_path, "set", "api_server.key", KEY)
    assert done.stdout == f"API_SERVER_KEY is set in {tmp_path / '.env'}\n"
    assert KEY not in done.output


def test_set_reports_lost_comments_and_sources_that_override_the_value(tmp_path: Path) -> None:
    shared = "_config_version: 33\nx: &x {default: a} # comment\nmodel: *x\n"
    (tmp_path / "config.yaml").write_text(shared, encoding="utf-8")
    done = hermes(tmp_path, "set", "model.provider", "groq", HERMES_INFERENCE_PROVIDER="openai")
    assert "the original file is" in done.stdout
    assert done.stderr == "note: environment HERMES_INFERENCE_PROVIDER overrides it\n"


@pytest.mark.parametrize(
    "args",
    [
        ("get", "no.such"),
        ("explain", "agent.maxturns"),
        ("set", "api_server.port", "x"),
        ("set", "no.such", "x"),
        ("set", "platforms.telegram.tokn", "x"),
        ("set", "platforms.telegram.reactions", "perhaps"),
        ("unset", "timezone"),
    ],
)
def test_a_mistake_gives_one_sentence_on_stderr_and_exit_code_2(
    tmp_path: Path, args: tuple[str, ...]
) -> None:
    failed = hermes(tmp_path, *args)
    assert failed.exit_code == 2
    assert failed.stdout == ""
    assert failed.stderr.count("\n") == 1
    assert "Traceback" not in failed.stderr


def test_explain_shows_the_source_of_the_value(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("model: a\n", encoding="utf-8")
    told = hermes(tmp_path, "explain", "model", HERMES_MODEL="b")
    assert told.stdout.splitlines() == [
        "model.default = b  (environment HERMES_MODEL)",
        f"  instead of a  ({tmp_path / 'config.yaml'} line 1)",
        "  instead of nothing  (default)",
    ]


def test_explain_as_json_also_masks_overridden_values(tmp_path: Path) -> None:
    other = "another-key-of-the-api"
    (tmp_path / ".env").write_text(f"API_SERVER_KEY={other}\n", encoding="utf-8")
    told = hermes(tmp_path, "explain", "api_server.key", "--json", API_SERVER_KEY=KEY)
    found = json.loads(told.stdout)
    assert found["source"] == "environment API_SERVER_KEY"
    assert found["shadowed"][0]["source"] == f"{tmp_path / '.env'} API_SERVER_KEY"
    assert KEY not in told.stdout
    assert other not in told.stdout


def test_check_accepts_a_good_configuration(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("skills: {}\n", encoding="utf-8")
    checked = hermes(tmp_path, "check", OPENAI_API_KEY="k")
    assert checked.exit_code == 0
    assert checked.stdout.splitlines() == [
        "warning: config.yaml: skills is not supported yet and is ignored",
        "model: gpt-5.6-terra (openai, https://api.openai.com/v1)",
        "ok",
    ]


def test_check_lists_every_problem_on_its_line(tmp_path: Path) -> None:
    text = "modle: x\nagent: {max_turns: 0}\n"
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    checked = hermes(tmp_path, "check")
    assert checked.exit_code == 1
    assert [line.partition(":")[0] for line in checked.stdout.splitlines()] == ["problem"] * 2


def test_check_finds_a_model_that_can_not_work(tmp_path: Path) -> None:
    checked = hermes(tmp_path, "check", HERMES_INFERENCE_PROVIDER="groq")
    assert checked.exit_code == 1
    assert "GROQ_API_KEY" in checked.stdout


def test_check_finds_errors_that_would_stop_the_agent_from_working(tmp_path: Path) -> None:
    broken = FakeRuntime(ConfigError("agent.toolsets: 'nope' is neither a toolset nor a tool"))
    checked = hermes(tmp_path, "check", runtime=broken)
    assert checked.exit_code == 1
    assert (
        checked.stdout.splitlines()[-1]
        == "problem: agent.toolsets: 'nope' is neither a toolset nor a tool"
    )


def test_check_names_no_address_for_a_model_of_this_machine(tmp_path: Path) -> None:
    checked = hermes(tmp_path, "check", HERMES_INFERENCE_PROVIDER="local")
    assert checked.stdout == "model: smollm2-135m-instruct (local)\nok\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agent: {toolsets: [nope]}", "agent.toolsets: 'nope' is neither a toolset nor a tool"),
        ("agent: {prefill_messages_file: gone.json}", "agent.prefill_messages_file"),
        ("model: {fallbacks: [a/b]}", "model.fallbacks"),
        ("auxiliary: {provider: groq}", "GROQ_API_KEY"),
    ],
)
def test_check_finds_errors_in_the_parts_of_the_agent(
    hermes: Run, tmp_path: Path, text: str, said: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text(f"{text}\n", encoding="utf-8")
    checked = hermes("config", "check")
    assert checked.returncode == 1
    assert said in checked.stdout.splitlines()[-1]
    assert [one.name for one in home.iterdir()] == ["config.yaml"]


def test_check_warns_if_there_is_no_model(tmp_path: Path) -> None:
    checked = hermes(tmp_path, "check")
    assert checked.exit_code == 0
    assert "no model is configured" in checked.stdout


def test_a_password_in_an_address_is_never_shown(tmp_path: Path) -> None:
    named = {"SEARXNG_URL": "http://me:opensesame@h", "HERMES_CUSTOM_BASE_URL": "http://:pass@h/v1"}
    for args in (("show",), ("get", "web.searxng_url"), ("explain", "model.base_url"), ("check",)):
        told = hermes(tmp_path, *args, runtime=None, HERMES_MODEL="m", **named).stdout
        assert "@h" in told
        assert "opensesame" not in told
        assert ":pass" not in told


def test_the_command_path_prints_the_path_of_the_file(tmp_path: Path) -> None:
    assert hermes(tmp_path, "path").stdout == f"{tmp_path / 'config.yaml'}\n"


def test_migrate_updates_an_older_file(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("model: m\nbase_url: http://x\n", encoding="utf-8")
    assert "the original file is" in hermes(tmp_path, "migrate").stdout
    assert hermes(tmp_path, "migrate").stdout == "nothing to do\n"


def test_check_reports_unused_data_of_hermes_agent(tmp_path: Path) -> None:
    (tmp_path / "skills").mkdir()
    checked = hermes(tmp_path, "check")
    assert checked.exit_code == 0
    assert "warning: data of Hermes Agent is not used: 3 skills" in checked.stdout


@pytest.mark.parametrize("command", [("set", "agent.max_turns", "5"), ("unset", "agent.max_turns")])
def test_a_change_says_that_the_running_gateway_has_to_be_restarted(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "config.yaml").write_text("agent:\n  max_turns: 4\n")
    assert hermes(tmp_path, *command).stderr == ""
    (tmp_path / "config.yaml").write_text("agent:\n  max_turns: 4\n")
    (tmp_path / "run").mkdir()
    assert (
        hermes(tmp_path, *command).stderr == "note: the running gateway uses it after a restart\n"
    )


def test_an_empty_value_is_explained_in_words(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("model:\n  default: m\n")
    assert "  instead of nothing  (default)" in hermes(tmp_path, "explain", "model.default").stdout
    (tmp_path / "config.yaml").write_text("")
    assert hermes(tmp_path, "explain", "model.default").stdout == (
        "model.default = nothing  (default)\n"
    )
