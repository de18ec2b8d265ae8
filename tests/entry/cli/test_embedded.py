"""The embedded model is offered, downloaded and saved as the choice."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from hermes.core.models.download import SMOLLM2
from hermes.entry.cli.embedded import stand_in
from hermes.entry.cli.runtime import Runtime
from hermes.settings import Settings, load
from hermes.testing.configured import models_of
from hermes.testing.terminal import Terminal

SCRIPT = """
from pathlib import Path
from msgspec.structs import replace
from hermes import settings
from hermes.entry.cli.embedded import offer
from hermes.testing.configured import models_of, offers_of
from hermes.types.errors import HermesError

class Runtime:
    models = staticmethod(models_of)
    offers = staticmethod(offers_of)

    async def download_model(self, settings, progress):
        progress(93_000_000, 93_000_000)
        return "demo"

try:
    chosen = offer(replace(settings.load(), workspace=Path('/here')), Runtime())
    choice = models_of(chosen).main()
    print(choice.provider, choice.model, chosen.workspace)
except HermesError as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HERMES_HOME": str(tmp_path), "TERM": "xterm"}


def test_an_accepted_offer_downloads_and_saves_the_model(
    tmp_path: Path, bare: dict[str, str]
) -> None:
    (tmp_path / "config.yaml").write_text("model:\n  default: gpt-x\n")
    with Terminal((sys.executable, "-c", SCRIPT), bare, tmp_path, columns=120) as terminal:
        terminal.until("93 MB, runs here, no tools)? [Y/n]")
        terminal.send("\n")
        terminal.until("local demo /here")
        assert "93 of 93 MB" in terminal.text
    saved = load(tmp_path, {})
    assert (saved.model.provider, saved.model.default) == ("local", "demo")


def test_a_model_that_was_already_downloaded_is_not_offered_as_a_download(
    tmp_path: Path, bare: dict[str, str]
) -> None:
    file = SMOLLM2.path(tmp_path / "models")
    file.parent.mkdir()
    with file.open("wb") as opened:
        opened.truncate(SMOLLM2.size)
    with Terminal((sys.executable, "-c", SCRIPT), bare, tmp_path, columns=120) as terminal:
        terminal.until("(downloaded already, runs here, no tools)? [Y/n]")


def test_a_declined_offer_says_how_to_configure_a_model(
    tmp_path: Path, bare: dict[str, str]
) -> None:
    with Terminal((sys.executable, "-c", SCRIPT), bare, tmp_path, columns=120) as terminal:
        terminal.until("[Y/n]")
        terminal.send("n\n")
        terminal.until("ConfigError No model is configured")
        assert "hermes config set" in terminal.text
    assert load(tmp_path, {}).model.provider == "auto"


class DownloadingRuntime:
    """A fake of the application whose download of the model ends at once."""

    models = staticmethod(models_of)

    async def download_model(self, settings: Settings, progress: Callable[[int, int], None]) -> str:
        return "smollm2-135m-instruct"


def stood_in(home: Path, config: str) -> tuple[str, str]:
    """Writes `config` to config.yaml. Returns the model that a gateway with `--embedded` then uses,
    and the new content of config.yaml."""
    file = home / "config.yaml"
    file.write_text(config)
    settings = stand_in(load(home, {}), cast("Runtime", DownloadingRuntime()), {})
    choice = models_of(settings).main()
    assert choice
    return choice.model, file.read_text()


def test_a_gateway_saves_the_demo_model_so_that_a_chat_uses_it_too(tmp_path: Path) -> None:
    model, _ = stood_in(tmp_path, "")
    assert model == "smollm2-135m-instruct"
    assert models_of(load(tmp_path, {})).main() == models_of(load(tmp_path, {})).named("local")


@pytest.mark.parametrize(
    ("config", "model"),
    [
        ("model: {default: gpt-x}\n", "smollm2-135m-instruct"),
        ("model: {provider: ollama, default: m}\n", "m"),
    ],
)
def test_a_gateway_does_not_replace_a_model_in_the_configuration(
    tmp_path: Path, config: str, model: str
) -> None:
    assert stood_in(tmp_path, config) == (model, config)
