"""The command `hermes status` shows the model, the service and the home."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from hermes import __version__

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_the_status_of_a_used_home_is_shown(
    hermes: Run, environ: dict[str, str], model_url: str
) -> None:
    assert hermes("chat", "-q", "hi").returncode == 0
    done = hermes("status")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[:5] == [
        f"Hermes    {__version__}",
        f"home      {environ['HERMES_HOME']}",
        "config    ok",
        f"model     fake (custom, {model_url})",
        "gateway   does not run; `hermes gateway` starts it",
    ]
    assert lines[5] == "commands  sandbox"
    assert lines[6].startswith("last used 20")
    found = json.loads(hermes("status", "--json").stdout)
    assert (found["model"], found["provider"], found["gateways"]) == ("fake", "custom", [])


def test_status_says_how_to_get_a_model(hermes: Run) -> None:
    done = hermes("status", HERMES_CUSTOM_BASE_URL="", HERMES_MODEL="")
    assert done.returncode == 1
    assert "model     none is configured; `hermes model` says how to choose one" in done.stdout


def test_a_wrong_setting_does_not_hide_the_other_lines(hermes: Run) -> None:
    done = hermes("status", API_SERVER_PORT="x")
    assert done.returncode == 1
    assert "config    environment API_SERVER_PORT" in done.stdout
    assert "gateway   does not run" in done.stdout
    assert "Traceback" not in done.stderr


def test_status_creates_no_files(hermes: Run, environ: dict[str, str]) -> None:
    assert hermes("status").returncode == 0
    assert not Path(environ["HERMES_HOME"]).exists()


def test_status_says_whether_approvals_are_off(hermes: Run, home: Path) -> None:
    assert "approvals" not in hermes("status").stdout
    home.mkdir()
    (home / "config.yaml").write_text("approvals: {mode: off}\n")
    told = "approvals off: the agent does dangerous actions without asking"
    assert told in hermes("status").stdout
    assert json.loads(hermes("status", "--json").stdout)["approvals"] == "off"


def test_commands_without_a_sandbox_are_reported(hermes: Run) -> None:
    done = hermes("status", TERMINAL_ENV="local")
    assert "commands  local: on this machine with your rights, without a sandbox" in done.stdout
