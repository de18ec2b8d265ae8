"""The option `-m` of `hermes chat` chooses the model."""

from pathlib import Path

import pytest

from hermes.app.application import Application
from hermes.entry.cli.model_option import with_model
from hermes.settings import load
from hermes.testing.configured import models_of
from hermes.types.errors import ConfigError

KEYS = {"GROQ_API_KEY": "sk-0123456789", "OPENAI_API_KEY": "sk-9876543210"}


def chosen(home: Path, name: str, **environ: str) -> tuple[str, str, str]:
    """Returns the provider, the model and the address for a name."""
    settings = with_model(load(home, environ), Application(), name, environ)
    found = models_of(settings).main()
    assert found
    return found.provider, found.model, found.base_url


def test_a_plain_name_is_a_model_of_the_configured_provider(tmp_path: Path) -> None:
    assert chosen(tmp_path, "gpt-x", **KEYS)[:2] == ("openai", "gpt-x")


@pytest.mark.parametrize("place", ["environment", "config.yaml"])
def test_another_provider_is_called_at_its_own_address(tmp_path: Path, place: str) -> None:
    environ = dict(KEYS)
    if place == "environment":
        environ["HERMES_CUSTOM_BASE_URL"] = "http://x/v1"
    else:
        (tmp_path / "config.yaml").write_text("model: {default: m, base_url: 'http://x/v1'}\n")
    assert chosen(tmp_path, "groq/a/b", **environ) == (
        "groq",
        "a/b",
        "https://api.groq.com/openai/v1",
    )
    assert chosen(tmp_path, "custom/n", **environ) == ("custom", "n", "http://x/v1")


def test_a_model_that_can_not_be_called_is_explained(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="GROQ_API_KEY"):
        chosen(tmp_path, "groq/a/b")
    with pytest.raises(ConfigError, match="No model is configured"):
        chosen(tmp_path, "gpt-x")
