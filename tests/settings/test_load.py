"""The configuration is loaded from several layers. For each value, the layer that it comes from is
known. Secrets are masked."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from hermes import settings as configuration
from hermes.settings import Settings, describe, load
from hermes.settings.schema import docstrings
from hermes.settings.sources import ConfigProblems
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


def test_an_empty_home_has_the_defaults(tmp_path: Path) -> None:
    found = load(tmp_path / "missing", {})
    assert found.api_server.host == "127.0.0.1"
    assert found.api_server.port == 8642
    assert found.agent.budget.steps == 90
    assert found.workspace == tmp_path / "missing" / "workspace"
    assert found.warnings == ()
    assert found.platforms == {}


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "model:\nagent: {}\n"])
def test_an_empty_file_is_accepted(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    assert load(tmp_path, {}).model.default == ""


def test_a_higher_layer_takes_precedence(tmp_path: Path) -> None:
    config, dotenv = "api_server:\n  port: 1001\n", "API_SERVER_PORT=1002\n"
    assert settings(tmp_path, config).api_server.port == 1001
    assert settings(tmp_path, config, dotenv).api_server.port == 1002
    environ = {"API_SERVER_PORT": "1003"}
    assert settings(tmp_path, config, dotenv, environ).api_server.port == 1003


@pytest.mark.parametrize("id", ["7", ":7", "telegram:"])
def test_an_owner_is_named_with_the_platform(tmp_path: Path, id: str) -> None:
    (tmp_path / "config.yaml").write_text(f"owners: [{id!r}]")
    with pytest.raises(ConfigError, match=r"config.yaml.*: access.owners needs the platform of"):
        load(tmp_path, {})


def test_an_empty_variable_is_not_set(tmp_path: Path) -> None:
    assert settings(tmp_path, environ={"API_SERVER_PORT": ""}).api_server.port == 8642


def test_the_home_comes_from_the_environment(tmp_path: Path) -> None:
    assert load(None, {"HERMES_HOME": str(tmp_path)}).home.root == tmp_path
    assert load(None, {}).home.root == Path("~/.hermes").expanduser()


def test_a_model_may_be_a_plain_string(tmp_path: Path) -> None:
    assert settings(tmp_path, "model: openai/gpt-x\n").model.default == "openai/gpt-x"


def test_the_variables_of_a_setting_have_a_precedence(tmp_path: Path) -> None:
    names = ["HERMES_DEFAULT_MODEL", "HERMES_INFERENCE_MODEL", "HERMES_MODEL"]
    environ: dict[str, str] = {}
    for name in names:
        environ[name] = name.lower()
        assert settings(tmp_path, environ=environ).model.default == name.lower()


def test_variables_are_expanded_from_both_environments(tmp_path: Path) -> None:
    config = "api_server:\n  port: ${PORT}\n  cors_origins: ['${SITE}/a']\n"
    found = settings(tmp_path, config, "PORT=9000\n", {"SITE": "http://x"})
    assert found.api_server.port == 9000
    assert found.api_server.cors_origins == ("http://x/a",)


def test_the_error_for_an_unset_variable_names_the_key(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "model:\n  api_key: ${NO_SUCH}\n")
    assert "line 2: model.api_key needs the variable NO_SUCH" in problem


def test_a_variable_in_an_ignored_section_may_be_unset(tmp_path: Path) -> None:
    assert settings(tmp_path, "mcp_servers:\n  a: {token: '${NO_SUCH}'}\n").sources.ignored


def test_dotenv_lines_may_be_quoted_exported_and_commented(tmp_path: Path) -> None:
    dotenv = (
        "# a comment\n\nexport HERMES_MODEL='a # b'\n"
        'HERMES_TIMEZONE="UTC" # why\nGATEWAY_ALLOWED_USERS=1, 2 # both\nAPI_SERVER_PORT= # none\n'
    )
    found = settings(tmp_path, dotenv=dotenv)
    assert found.model.default == "a # b"
    assert found.timezone == "UTC"
    assert found.access.allowed_users == ("1", "2")
    assert found.api_server.port == 8642


def test_the_warning_about_an_invalid_dotenv_line_does_not_show_it(
    tmp_path: Path,
) -> None:
    (warning,) = settings(tmp_path, dotenv="sk-secret-pasted-here\n").warnings
    assert "line 1" in warning
    assert "sk-secret" not in warning


@pytest.mark.parametrize("text", ["true", "1", "yes", "On"])
def test_booleans_in_the_environment_are_converted(tmp_path: Path, text: str) -> None:
    environ = {"GATEWAY_ALLOW_ALL_USERS": text, "API_SERVER_ENABLED": "off"}
    found = settings(tmp_path, environ=environ)
    assert found.access.allow_all
    assert not found.api_server.enabled


def test_platforms_are_set_by_file_and_environment(tmp_path: Path) -> None:
    config = "platforms:\n  telegram:\n    enabled: true\n    allowed_users: [42, '43']\n"
    found = settings(tmp_path, config, environ={"DISCORD_ALLOW_ALL_USERS": "1"})
    assert found.platforms.keys() == {"telegram", "discord"}
    assert found.platforms["telegram"].allowed_users == ("42", "43")
    assert found.platforms["telegram"].enabled is True
    assert found.platforms["discord"].allow_all


def test_a_relative_workspace_is_in_the_home(tmp_path: Path) -> None:
    assert settings(tmp_path, "workspace: files\n").workspace == tmp_path / "files"
    assert settings(tmp_path, "workspace: /srv/w\n").workspace == Path("/srv/w")
    assert load(tmp_path, {}).explain("workspace").value == Path("/srv/w")


def test_the_files_of_the_agent_are_in_the_shared_folder(tmp_path: Path) -> None:
    home, shared = tmp_path / "home", tmp_path / "shared"
    home.mkdir(mode=0o700)
    environ = {"HERMES_STORE_SHARED_FOLDER": str(shared)}
    found = settings(home, "workspace: files\n", environ=environ)
    assert found.files.root == shared
    assert found.workspace == shared / "files"
    assert found.home.root == home
    elsewhere = found.with_shared_folder(str(tmp_path / "other"))
    assert elsewhere.workspace == tmp_path / "other" / "files"
    assert found.with_shared_folder("").workspace == home / "files"
    outside = settings(home, "workspace: /srv/w\n", environ=environ).with_shared_folder("")
    assert outside.workspace == Path("/srv/w")


@pytest.mark.parametrize(
    ("folder", "problem"),
    [
        ("shared", "is a relative path: write the whole path"),
        ("{home}", "which other machines don't share"),
        ("{home}/shared", "which other machines don't share"),
    ],
)
def test_a_folder_that_can_not_be_shared_is_refused(
    tmp_path: Path, folder: str, problem: str
) -> None:
    config = f"store:\n  shared_folder: {folder.format(home=tmp_path)}\n"
    with pytest.raises(ConfigError, match=f"config.yaml.*: store.shared_folder .*{problem}"):
        settings(tmp_path, config)


def test_explain_returns_the_source_and_the_overridden_values(tmp_path: Path) -> None:
    found = settings(tmp_path, "\nmodel: a\n", "HERMES_MODEL=b\n", {"HERMES_MODEL": "c"})
    explanation = found.explain("model")
    assert explanation.key == "model.default"
    assert explanation.value == "c"
    assert explanation.source == "environment HERMES_MODEL"
    assert explanation.shadowed == (
        (f"{tmp_path / '.env'} HERMES_MODEL", "b"),
        (f"{tmp_path / 'config.yaml'} line 2", "a"),
        ("default", ""),
    )


def test_explain_shows_converted_values(tmp_path: Path) -> None:
    found = settings(tmp_path, "api_server: {port: x}\n", environ={"API_SERVER_PORT": "9"})
    explanation = found.explain("api_server.port")
    assert explanation.value == 9
    assert explanation.shadowed[0][1] == "x"


def test_explain_of_an_unknown_key_suggests_the_nearest_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'agent\.max_turns'"):
        settings(tmp_path).explain("agent.maxturns")


def test_the_key_of_a_setting_takes_precedence_over_its_aliases(tmp_path: Path) -> None:
    config = "agent:\n  turn_timeout: 1\n  gateway_timeout: 2\n"
    assert settings(tmp_path, config).agent.turn_timeout == 1


def test_secrets_are_never_in_a_repr(tmp_path: Path) -> None:
    config = "model: {base_url: 'http://x', api_key: config-secret}\n"
    config += "platforms: {slack: {token: yaml-secret}}\n"
    environ = {"OPENAI_API_KEY": "process-secret", "API_SERVER_KEY": KEY, "PATH": "/usr/bin"}
    found = settings(tmp_path, config, "TELEGRAM_BOT_TOKEN=dotenv-secret\n", environ)
    expected = {"config-secret", "yaml-secret", "process-secret", "dotenv-secret", KEY}
    assert found.secrets() == expected
    shown = repr(found) + repr(found.sources) + repr(found.model) + repr(found.api_server)
    shown += repr(found.sources.found) + repr(found.explain("api_server.key"))
    assert not [secret for secret in expected if secret in shown]


@pytest.mark.parametrize(
    "name",
    [
        *("MY_DB_PASSWORD", "SMTP_PASS", "DB_PWD", "STRIPE_SECRET", "API_KEYS", "TOKEN_2"),
        *("AWS_SECRET_ACCESS_KEY", "VAULT_PASSPHRASE", "NPM_AUTH", "Authorization"),
    ],
)
def test_a_secret_is_recognised_by_its_name(tmp_path: Path, name: str) -> None:
    assert settings(tmp_path, environ={name: "opensesame"}).secrets() == {"opensesame"}


@pytest.mark.parametrize("name", ["PWD", "OLDPWD", "SSH_AUTH_SOCK", "GIT_ASKPASS", "COMPASS"])
def test_a_value_whose_name_only_resembles_a_secret_is_not_a_secret(
    tmp_path: Path, name: str
) -> None:
    assert settings(tmp_path, environ={name: "/some/place"}).secrets() == frozenset()


def test_a_password_in_an_address_is_a_secret_unless_it_is_a_word(tmp_path: Path) -> None:
    environ = {
        "DATABASE_URL": "postgres://me:p%40ss-w0rd@db/x",
        "CACHE": "redis://:correcthorsebattery@cache",
        "OTHER_URL": "postgres://postgres:postgres@db",
    }
    found = settings(tmp_path, environ=environ).secrets()
    assert found == {"p%40ss-w0rd", "p@ss-w0rd", "correcthorsebattery"}


def test_an_overridden_secret_is_still_a_secret(tmp_path: Path) -> None:
    found = settings(tmp_path, dotenv="A_TOKEN=dotenv-secret\n", environ={"A_TOKEN": "overruling"})
    assert found.secrets() == {"dotenv-secret", "overruling"}


def test_secrets_in_lists_and_the_generated_key_are_known(tmp_path: Path) -> None:
    (tmp_path / "api_server.key").write_text("made-at-the-start\n")
    config = "_config_version: 33\nmcp_servers: [{env: {A_TOKEN: in-a-list}}]\n"
    assert settings(tmp_path, config).secrets() == {"in-a-list", "made-at-the-start"}


def test_a_turn_without_a_limit_still_ends(tmp_path: Path) -> None:
    assert settings(tmp_path, "agent: {turn_timeout: 0}").agent.budget.seconds == 7 * 86_400


def test_every_setting_is_documented() -> None:
    docs = {doc.key: doc for doc in describe()}
    assert not [doc.key for doc in docs.values() if not doc.text or not doc.type]
    assert docs["platforms.<name>.allowed_users"].env == ("<NAME>_ALLOWED_USERS",)
    assert docs["api_server.port"].default == 8642
    assert docs["model.max_tokens"].type == "a whole number from 1"


def test_every_field_of_settings_has_a_docstring() -> None:
    texts = docstrings(configuration)
    assert not [
        field.name
        for field in msgspec.structs.fields(Settings)
        if not texts.get(("Settings", field.name))
    ]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"API_SERVER_KEY": "short"}, "5 characters"),
        ({"API_SERVER_KEY": "changeme-changeme-changeme"}, "placeholder"),
        ({"API_SERVER_KEY": "your-key-goes-in-here"}, "placeholder"),
        ({"API_SERVER_HOST": "0.0.0.0"}, "set API_SERVER_KEY in"),
        ({"API_SERVER_HOST": "127.example.org"}, "set API_SERVER_KEY in"),
    ],
)
def test_an_api_that_anybody_could_use_is_refused(
    tmp_path: Path, environ: dict[str, str], expected: str
) -> None:
    (problem,) = problems(tmp_path, environ=environ)
    assert expected in problem
    assert environ.get("API_SERVER_KEY", "?") not in problem
    settings(tmp_path, environ={**environ, "API_SERVER_ENABLED": "no"})


def test_other_machines_may_use_the_api_with_a_key(tmp_path: Path) -> None:
    environ = {"API_SERVER_HOST": "0.0.0.0", "API_SERVER_KEY": KEY}
    assert settings(tmp_path, environ=environ).api_server.host == "0.0.0.0"


def test_a_boolean_setting_is_read_by_its_key(tmp_path: Path) -> None:
    found = settings(tmp_path, "compression: {enabled: false}")
    assert not found.is_on("compression.enabled")
    assert found.is_on("memory.memory_enabled"), "an alias works too"
    for key in ("compression.threshold", "platforms.telegram.allow_all"):
        with pytest.raises(ConfigError, match="not a setting whose value is true or false"):
            found.is_on(key)
    with pytest.raises(ConfigError, match=r"did you mean 'compression\.enabled'"):
        found.is_on("compression.enabeld")


def test_personalities_are_texts_by_name(tmp_path: Path) -> None:
    found = settings(tmp_path, "agent: {personalities: {pirate: Talk like a pirate.}}")
    assert found.agent.personalities == {"pirate": "Talk like a pirate."}
    (problem,) = problems(tmp_path, "agent: {personalities: {pirate: {tone: rough}}}")
    assert "agent.personalities" in problem
