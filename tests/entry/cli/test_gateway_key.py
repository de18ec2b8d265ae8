"""`hermes gateway` has an API key that nobody can guess, and does not show it."""

import stat
from pathlib import Path

import pytest

from tests.entry.cli.conftest import Run, Service


def test_a_configured_key_is_named_and_not_shown(environ: dict[str, str], home: Path) -> None:
    key = "a-key-of-the-operator-0123"
    with Service({**environ, "API_SERVER_KEY": key}, "--port", "0") as service:
        told = "The API key is in environment API_SERVER_KEY. In another terminal:"
        assert told in service.lines
        assert key not in service.shown["curl"]
    assert not (home / "api_server.key").exists()


@pytest.mark.parametrize("place", [".env", "config.yaml"])
def test_the_printed_request_works_in_a_clean_shell_wherever_the_key_is_stored(
    environ: dict[str, str], home: Path, place: str
) -> None:
    key = "a-key-of-the-operator-0123"
    contents = {
        ".env": f"API_SERVER_KEY='{key}'  # ours\n",
        "config.yaml": f"api_server: {{key: {key}}}\n",
    }
    home.mkdir(mode=0o700)
    (home / place).write_text(contents[place])
    with Service(environ, "--port", "0") as service:
        assert key not in "".join(service.lines)
        assert "you said:" in service.answer()


@pytest.mark.parametrize(
    ("place", "key"),
    [
        ("environment", "x"),
        (".env", "changeme-changeme-1"),
        ("config.yaml", "password123456789"),
        ("api_server.key", "x"),
    ],
)
def test_a_key_that_others_could_guess_is_refused_from_any_source(
    environ: dict[str, str], home: Path, hermes: Run, place: str, key: str
) -> None:
    home.mkdir(mode=0o700)
    contents = {
        ".env": f"API_SERVER_KEY={key}\n",
        "config.yaml": f"api_server: {{key: {key}}}\n",
        "api_server.key": f"{key}\n",
    }
    if place in contents:
        (home / place).write_text(contents[place])
        (home / place).chmod(0o600)
    given = {"API_SERVER_KEY": key} if place == "environment" else {}
    refused = hermes("gateway", "run", "--port", "0", **given)
    assert refused.returncode == 78
    assert "`hermes gateway new-key`" in refused.stderr
    assert place in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    checked = hermes("config", "check", **given)
    assert checked.returncode == 1
    assert "`hermes gateway new-key`" in checked.stdout


def test_a_new_key_replaces_a_bad_one(environ: dict[str, str], home: Path, hermes: Run) -> None:
    home.mkdir(mode=0o700)
    (home / "api_server.key").write_text("x\n")
    made = hermes("gateway", "new-key")
    assert made.returncode == 0
    assert str(home / "api_server.key") in made.stdout
    key = (home / "api_server.key").read_text().strip()
    assert len(key) >= 32
    assert key not in made.stdout + made.stderr
    assert stat.S_IMODE((home / "api_server.key").stat().st_mode) == 0o600
    with Service(environ, "--port", "0") as service:
        assert "you said:" in service.answer()
    overruled = hermes("gateway", "new-key", API_SERVER_KEY="Qv7rXt2LmB9sKd4wZn6c")
    assert "environment API_SERVER_KEY sets another one" in overruled.stderr


def test_a_new_key_says_that_the_running_gateway_keeps_the_old_key(
    environ: dict[str, str], hermes: Run
) -> None:
    with Service(environ, "--port", "0"):
        made = hermes("gateway", "new-key")
    assert made.stderr == "note: the running gateway accepts the old key until you restart it\n"
    assert hermes("gateway", "new-key").stderr == ""


def test_an_open_address_without_a_key_is_refused(hermes: Run) -> None:
    done = hermes("gateway", "--host", "0.0.0.0")
    assert done.returncode == 78
    assert "API_SERVER_KEY" in done.stderr
