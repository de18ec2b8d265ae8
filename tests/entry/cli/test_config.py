"""`hermes config`, as a person types it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hermes.core.models.catalog import Catalog
from hermes.entry.cli.config import config
from hermes.settings import schema

KEY = "0123456789abcdef0123"


def hermes(home: Path, *args: str, **environ: str) -> Result:
    names = {name for field in schema().fields.values() for name in field.also.env}
    names |= {name for one in Catalog.load().providers for name in (*one.keys, *one.base_url_env)}
    clean: dict[str, str | None] = dict.fromkeys(names)
    return CliRunner(env={**clean, "HERMES_HOME": str(home), **environ}).invoke(config, args)


def test_show_lists_the_settings_and_masks_secrets(tmp_path: Path) -> None:
    shown = hermes(tmp_path, "show", API_SERVER_KEY=KEY)
    assert shown.exit_code == 0
    assert "api_server.port = 8642" in shown.stdout
    assert "api_server.enabled = true" in shown.stdout
    assert "platforms.telegram" not in shown.stdout
    assert KEY not in shown.stdout


def test_show_as_json(tmp_path: Path) -> None:
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


def test_set_says_that_a_secret_went_into_dotenv(tmp_path: Path) -> None:
    done = hermes(tmp_path, "set", "api_server.key", KEY)
    assert done.stdout == f"API_SERVER_KEY is set in {tmp_path / '.env'}\n"
    assert KEY not in done.output


def test_set_says_when_comments_were_lost_and_when_it_is_overruled(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("model: a # comment\n", encoding="utf-8")
    done = hermes(tmp_path, "set", "model.provider", "groq", HERMES_INFERENCE_PROVIDER="openai")
    assert "the file as it was is" in done.stdout
    assert done.stderr == "note: environment HERMES_INFERENCE_PROVIDER overrules it\n"


@pytest.mark.parametrize(
    "args",
    [
        ("get", "no.such"),
        ("explain", "agent.maxturns"),
        ("set", "api_server.port", "x"),
        ("set", "no.such", "x"),
    ],
)
def test_a_mistake_is_a_sentence_on_stderr_and_exit_code_2(
    tmp_path: Path, args: tuple[str, ...]
) -> None:
    failed = hermes(tmp_path, *args)
    assert failed.exit_code == 2
    assert failed.stdout == ""
    assert failed.stderr.count("\n") == 1
    assert "Traceback" not in failed.stderr


def test_explain_shows_who_won(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("model: a\n", encoding="utf-8")
    told = hermes(tmp_path, "explain", "model", HERMES_MODEL="b")
    assert told.stdout.splitlines() == [
        "model.default = b  (environment HERMES_MODEL)",
        f"  instead of a  ({tmp_path / 'config.yaml'} line 1)",
        "  instead of   (default)",
    ]


def test_explain_as_json_masks_what_lost_too(tmp_path: Path) -> None:
    other = "another-key-of-the-api"
    (tmp_path / ".env").write_text(f"API_SERVER_KEY={other}\n", encoding="utf-8")
    told = hermes(tmp_path, "explain", "api_server.key", "--json", API_SERVER_KEY=KEY)
    found = json.loads(told.stdout)
    assert found["source"] == "environment API_SERVER_KEY"
    assert found["shadowed"][0]["source"] == f"{tmp_path / '.env'} API_SERVER_KEY"
    assert KEY not in told.stdout
    assert other not in told.stdout


def test_check_is_content_with_a_good_configuration(tmp_path: Path) -> None:
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


def test_check_warns_without_a_model(tmp_path: Path) -> None:
    checked = hermes(tmp_path, "check")
    assert checked.exit_code == 0
    assert "no model is configured" in checked.stdout


def test_a_password_in_an_address_is_never_shown(tmp_path: Path) -> None:
    named = {"SEARXNG_URL": "http://me:opensesame@h", "HERMES_CUSTOM_BASE_URL": "http://:pass@h/v1"}
    for args in (("show",), ("get", "web.searxng_url"), ("explain", "model.base_url"), ("check",)):
        told = hermes(tmp_path, *args, HERMES_MODEL="m", **named).stdout
        assert "@h" in told
        assert "opensesame" not in told
        assert ":pass" not in told


def test_path_names_the_file(tmp_path: Path) -> None:
    assert hermes(tmp_path, "path").stdout == f"{tmp_path / 'config.yaml'}\n"


def test_migrate_renews_an_older_file(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("model: m\nbase_url: http://x\n", encoding="utf-8")
    assert "the file as it was is" in hermes(tmp_path, "migrate").stdout
    assert hermes(tmp_path, "migrate").stdout == "nothing to do\n"
