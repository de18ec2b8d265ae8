"""The command `hermes prompt` shows the parts of the prompt with their sizes."""

import json
from pathlib import Path

from tests.entry.cli.conftest import Run


def test_each_part_is_shown_with_its_size(hermes: Run, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "SOUL.md").write_text("You are Ada.")
    lines = hermes("prompt", "show").stdout.splitlines()
    assert lines[0].split() == ["identity", "12", "characters"]
    assert [line.split()[0] for line in lines][-2:] == ["tools", "together"]
    assert "You are Ada." in hermes("prompt", "show", "--full").stdout


def test_the_json_output_has_every_part(hermes: Run) -> None:
    made = json.loads(hermes("prompt", "show", "--json", "--platform", "telegram").stdout)
    assert "private chat on telegram" in {p["name"]: p["text"] for p in made["parts"]}["place"]


def test_without_a_model_the_error_says_what_to_do(hermes: Run) -> None:
    done = hermes("prompt", "show", HERMES_CUSTOM_BASE_URL="", HERMES_MODEL="")
    assert done.returncode == 78
    assert "No model is configured" in done.stderr


def test_the_prompt_is_the_same_as_that_of_a_chat_in_this_folder(hermes: Run) -> None:
    assert str(Path.cwd()) in hermes("prompt", "show", "--full").stdout
