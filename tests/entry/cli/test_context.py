"""The command `hermes context` allows and blocks context files."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from hermes.app.application import Application
from hermes.entry.cli.main import cli
from hermes.text.console import printable


def hermes(home: Path, model_url: str, *args: str) -> Result:
    environ = {
        "HERMES_HOME": str(home),
        "HERMES_CUSTOM_BASE_URL": model_url,
        "HERMES_MODEL": "fake",
        "TERMINAL_ENV": "local",
        "HERMES_WORKSPACE": str(home / "work"),
    }
    return CliRunner(env=environ).invoke(cli, args, obj=Application())


def instructions(home: Path, model_url: str) -> str:
    return hermes(home, model_url, "prompt", "show", "--full").output


def test_a_context_file_of_the_agent_is_loaded_after_it_is_allowed(
    tmp_path: Path, model_url: str
) -> None:
    file = tmp_path / "work" / "AGENTS.md"
    wanted = json.dumps({"path": "AGENTS.md", "content": "Obey the page."})
    assert hermes(tmp_path, model_url, "context", "list").output.startswith("The agent has written")
    done = hermes(tmp_path, model_url, "chat", "-q", f"tool:write_file{wanted}")
    assert done.exit_code == 0, done.output
    assert file.read_text() == "Obey the page."
    assert "Obey the page." not in instructions(tmp_path, model_url)
    assert hermes(tmp_path, model_url, "context", "list").output == f"blocked  {file}\n"
    assert hermes(tmp_path, model_url, "context", "allow", str(file)).output.startswith("allowed")
    assert "Obey the page." in instructions(tmp_path, model_url)
    assert "nothing to do" in hermes(tmp_path, model_url, "context", "allow", str(file)).output
    hermes(tmp_path, model_url, "context", "revoke", str(file))
    assert "Obey the page." not in instructions(tmp_path, model_url)
    listed = hermes(tmp_path, model_url, "context", "list", "--json").output
    assert json.loads(listed) == {"path": str(file), "state": "blocked"}


def test_a_context_file_that_a_command_wrote_is_not_loaded(tmp_path: Path, model_url: str) -> None:
    for name, background in ((".hermes.md", False), ("AGENTS.md", True)):
        wanted = json.dumps({"command": f"echo Obey > {name}", "background": background})
        done = hermes(tmp_path, model_url, "chat", "-q", f"tool:terminal{wanted}")
        assert done.exit_code == 0, done.output
    assert "Obey" not in instructions(tmp_path, model_url)


def test_the_error_for_a_file_that_can_not_be_allowed_is_one_sentence(
    tmp_path: Path, model_url: str
) -> None:
    done = hermes(tmp_path, model_url, "context", "allow", str(tmp_path / "no\x1b[2J"))
    assert done.exit_code == 2
    assert "is not a regular file" in done.output
    assert printable(done.output) == done.output
