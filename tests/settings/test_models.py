"""The model settings are converted for core/models."""

import re
from pathlib import Path

import pytest

from hermes.core.models.catalog import Catalog
from hermes.core.models.model_config import EndpointConfig, SettingLayer, SettingSource
from hermes.settings import load
from hermes.settings.models import explain, model_config

PACKAGE = Path(__file__).parents[2] / "hermes" / "settings"


def test_every_setting_is_passed_on_with_its_source(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "model:\n  default: m\n  provider: p\n  base_url: http://x\n  wire: Chat\n"
        "  context_length: 5\n  max_tokens: 6\n  input_price: 7\n  output_price: 8\n"
        "  fallbacks: [a/b]\nauxiliary: {model: a, provider: q, base_url: 'http://y'}\n",
        encoding="utf-8",
    )
    (tmp_path / ".env").write_text("HERMES_CUSTOM_API_KEY=key-of-model\n", encoding="utf-8")
    environ = {"HERMES_AUXILIARY_API_KEY": "k2", "OTHER": "1"}
    found = model_config(load(tmp_path, environ))
    assert found.main == EndpointConfig(
        section="model",
        provider="p",
        model="m",
        base_url="http://x",
        api_key="key-of-model",
        key_address="http://x",
    )
    assert found.auxiliary == EndpointConfig(
        section="auxiliary",
        provider="q",
        model="a",
        base_url="http://y",
        api_key="k2",
        key_address="http://y",
    )
    assert (found.wire, found.fallbacks) == ("chat", ("a/b",))
    assert (found.context_length, found.max_tokens) == (5, 6)
    assert (found.input_price, found.output_price) == (7.0, 8.0)
    line = f"{tmp_path / 'config.yaml'} line 2"
    assert found.sources["model.default"] == SettingSource(layer=SettingLayer.CONFIG, text=line)
    assert found.layer("model.api_key") == SettingLayer.DOTENV
    assert found.layer("auxiliary.api_key") == SettingLayer.ENVIRONMENT
    assert found.variables["auxiliary.model"] == "HERMES_AUXILIARY_MODEL"
    assert found.environ["OTHER"] == "1"
    assert found.variable_source("HERMES_CUSTOM_API_KEY").startswith(str(tmp_path / ".env"))
    assert (found.models, found.cache) == (tmp_path / "models", tmp_path / "cache" / "models")


def test_without_settings_every_value_is_a_default(tmp_path: Path) -> None:
    found = model_config(load(tmp_path, {}))
    assert found.sources == {}
    assert found.wire == "auto"


def test_a_variable_of_a_provider_is_explained_like_a_setting(tmp_path: Path) -> None:
    key, address = Catalog.load().providers[0].keys[0], Catalog.load().providers[0].base_url_env[0]
    (tmp_path / ".env").write_text(f"{key}=secret-of-mine\n", encoding="utf-8")
    settings = load(tmp_path, {address: "http://x"})
    found = explain(settings, key)
    assert (found.value, found.secret) == ("secret-of-mine", True)
    assert found.source == f"{tmp_path / '.env'} {key}"
    found = explain(settings, address)
    assert (found.value, found.source, found.secret) == (
        "http://x",
        f"environment {address}",
        False,
    )
    assert explain(load(tmp_path / "empty", {}), key).source == "default"
    assert explain(settings, "model.provider").value == "auto"


@pytest.mark.parametrize("name", sorted({k for one in Catalog.load().providers for k in one.keys}))
def test_the_key_of_every_provider_is_a_secret(tmp_path: Path, name: str) -> None:
    assert "a-long-secret" in load(tmp_path, {name: "a-long-secret"}).secrets()


def test_no_provider_is_named_in_the_settings() -> None:
    # The test does not look for the names `local`, `custom` and `together`, because these names are
    # ordinary words, too.
    names = {name for one in Catalog.load().providers for name in one.names}
    words = "|".join(sorted(names - {"local", "custom", "together"}))
    named = re.compile(rf"(?i)(?<![a-z])(?:{words})(?!_chat|[a-z])")
    for path in PACKAGE.glob("*.py"):
        assert named.findall(path.read_text("utf-8")) == [], path.name
