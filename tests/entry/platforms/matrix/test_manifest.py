"""Matrix settings are read from config.yaml and the environment. Wrong settings are refused."""

from pathlib import Path

import pytest

from hermes.entry.messaging import make_adapters
from hermes.entry.platforms.matrix.manifest import (
    MATRIX,
    MatrixAccount,
    MatrixConfig,
    accounts,
    credentials,
)
from hermes.settings import load
from hermes.settings.platforms import platform_config
from hermes.types.errors import ConfigError

SERVER = "https://x.org"


def test_the_settings_are_read_from_the_environment(tmp_path: Path) -> None:
    environ = {
        "MATRIX_HOMESERVER": SERVER,
        "MATRIX_USER": "@hermes:x.org",
        "MATRIX_PASSWORD": "secret",
        "MATRIX_ALLOWED_USERS": "@ann:x.org,@bob:x.org",
    }
    settings = load(tmp_path, environ)
    config = platform_config(settings, MATRIX)
    assert config == MatrixConfig(homeserver=SERVER, user="@hermes:x.org", password="secret")
    assert settings.platforms["matrix"].allowed_users == ("@ann:x.org", "@bob:x.org")
    (adapter,) = make_adapters(settings, [MATRIX])
    assert adapter.account == "matrix"


def test_several_accounts_are_read_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "platforms:\n  matrix:\n    homeserver: https://x.org/\n    access_token: t1\n"
        "    accounts:\n      help: {access_token: '${HELP}'}\n"
        "      far: {user: '@f:y.org', password: p, homeserver: 'https://y.org'}\n"
    )
    config = platform_config(load(tmp_path, {"HELP": "t2"}), MATRIX)
    assert accounts(config) == ["matrix", "matrix.help", "matrix.far"]
    helping = MatrixAccount(homeserver=SERVER, access_token="t2")
    assert credentials("matrix.help", config) == helping
    assert credentials("matrix.far", config).homeserver == "https://y.org"


def test_without_credentials_there_is_no_account() -> None:
    assert accounts(MatrixConfig(homeserver=SERVER)) == []


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (MatrixConfig(homeserver=SERVER, user="@u:x.org"), "needs an access_token, or a user and"),
        (MatrixConfig(homeserver=SERVER, password="p"), "needs an access_token, or a user and"),
        (MatrixConfig(access_token="t"), "homeserver of matrix is not a URL"),
        (MatrixConfig(homeserver="x.org", access_token="t"), "homeserver of matrix is not a URL"),
        (
            MatrixConfig(
                homeserver=SERVER,
                access_token="t",
                accounts={"again": MatrixAccount(access_token="t")},
            ),
            "the same credentials",
        ),
    ],
)
def test_values_that_can_not_be_used_are_refused(config: MatrixConfig, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        accounts(config)
