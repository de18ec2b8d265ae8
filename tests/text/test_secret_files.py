"""The values in files that are made for secrets are masked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.text.secret_files import is_secret_file, masked_values


@pytest.mark.parametrize(
    "path",
    [
        *(".env", "a/.env.local", "prod.env", ".ENVRC", "credentials", ".aws/credentials"),
        *("secrets.yaml", ".netrc", ".npmrc", ".pgpass", ".ssh/id_rsa", "id_ed25519", "tls/x.pem"),
        *("api_server.key", ".git-credentials", "live.tfvars", "'odd\\n/.env'"),
    ],
)
def test_secret_files_are_recognized_by_their_names(path: str) -> None:
    assert is_secret_file(path)


@pytest.mark.parametrize(
    "path",
    [
        *("main.py", "env.py", "secrets.py", ".env.example", "credentials.ts", "id_rsa.pub"),
        *(".env/main.py", "environment", "keys.md", "monkey"),
    ],
)
def test_other_files_are_not_secret_files(path: str) -> None:
    assert not is_secret_file(path)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# the database\nDB_PASSWORD=hunter2\r\nEMPTY=\n", "# the database\nDB_PASSWORD=…\n…\n"),
        ("export PORT = '8080'", "export PORT = …"),
        ("#OLD_TOKEN=abcdefghijklmnopqrstuvwxyz", "#OLD_TOKEN=abcd…yz"),
        ('{\n  "private_key": "abc",\n}', '{\n  "private_key": …\n}'),
        ("[default]\naws_secret_access_key = wJalr/XUtn", "[default]\naws_secret_access_key = …"),
        ("machine h login me password hunter2", "…"),
        ("localhost:5432:db:me:hunter2", "localhost:…"),
        ("https://me:hunter2@host", "https:…"),
        ("//host/:_authToken=abc", "//host/:_authToken=…"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\nxyz==",
            "-----BEGIN RSA PRIVATE KEY-----\n…\n…",
        ),
        ("…cut/in/the/middle=abc", "…"),
    ],
)
def test_names_are_shown_and_values_are_not(text: str, shown: str) -> None:
    assert masked_values(text) == shown


@given(
    st.from_regex(r"[A-Z][A-Z_]{0,30}", fullmatch=True),
    st.from_regex(r"[a-z0-9+/=$!.,:@-]{8,60}", fullmatch=True),
    st.sampled_from(["{}={}", "{} = '{}'", '  "{}": "{}",', "{}: {}", "export {}={}", "#{}={}"]),
)
def test_no_value_is_ever_shown(name: str, value: str, form: str) -> None:
    assert value not in masked_values(form.format(name, value))


@given(st.text())
def test_masking_keeps_the_number_of_lines(text: str) -> None:
    assert masked_values(text).count("\n") == text.count("\n")
