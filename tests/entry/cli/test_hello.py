"""A new user sees how to connect, and the answer to a first question."""

from pathlib import Path

import pytest

from hermes.entry.cli.hello import ask, model_line, own_command
from hermes.settings import load
from hermes.testing.configured import models_of
from hermes.testing.service import SERVICE_KEY, serving
from hermes.types.errors import Disconnected, Rejected


async def test_the_answer_is_shown_in_pieces_as_it_arrives(tmp_path: Path) -> None:
    shown: list[str] = []
    async with serving(tmp_path) as service:
        await ask(service.base_url, SERVICE_KEY, "tokens:30 delay:0.02", shown.append)
    assert "you said: " in "".join(shown)
    assert len([piece for piece in shown if piece]) > 2


async def test_the_errors_for_a_refusal_and_a_failed_turn_are_one_sentence_each(
    tmp_path: Path,
) -> None:
    shown: list[str] = []
    async with serving(tmp_path) as service:
        with pytest.raises(Rejected, match="key"):
            await ask(service.base_url, "another", "hi", shown.append)
        with pytest.raises(Rejected, match="told to fail"):
            await ask(service.base_url, SERVICE_KEY, "status:400", shown.append)
    assert "".join(shown) == ""


async def test_the_error_names_a_service_that_does_not_answer() -> None:
    with pytest.raises(Disconnected, match=r"127\.0\.0\.1:9/"):
        await ask("http://127.0.0.1:9", SERVICE_KEY, "hi", print)


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({}, "hermes config set model.base_url"),
        ({"HERMES_INFERENCE_PROVIDER": "local"}, "a small demo model that runs here"),
        ({"HERMES_INFERENCE_PROVIDER": "local"}, "such as OPENROUTER_API_KEY, in"),
        ({"HERMES_MODEL": "/tmp/own.gguf"}, "model: /tmp/own.gguf (local)"),
        ({"HERMES_CUSTOM_BASE_URL": "http://h/v1", "HERMES_MODEL": "m"}, "m (custom, http://h/v1)"),
    ],
)
def test_the_kind_of_the_model_is_described(
    tmp_path: Path, environ: dict[str, str], said: str
) -> None:
    settings = load(tmp_path, environ)
    assert said in model_line(settings, models_of(settings))


def test_the_command_for_another_terminal_names_an_unusual_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert own_command(load(tmp_path / ".hermes", {})) == "hermes"
    assert own_command(load(tmp_path / "a b", {})) == f"HERMES_HOME='{tmp_path}/a b' hermes"
    script = tmp_path / "hermes"
    script.touch()
    monkeypatch.setattr("sys.argv", [str(script), "gateway"])
    assert own_command(load(tmp_path / ".hermes", {})) == str(script)
    script.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    assert own_command(load(tmp_path / ".hermes", {})) == "hermes"
    # Here `hermes` is on the PATH only because its virtual environment is active. In another
    # terminal this environment is perhaps not active, so the command has the full path.
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    assert own_command(load(tmp_path / ".hermes", {})) == str(script)


def test_the_command_for_another_terminal_works_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [".venv/bin/hermes"])
    assert own_command(load(tmp_path / ".hermes", {})) == f"{tmp_path}/.venv/bin/hermes"
    monkeypatch.setattr("sys.argv", ["/lib/hermes/__main__.py"])
    assert own_command(load(tmp_path / ".hermes", {})).endswith("python -m hermes")
