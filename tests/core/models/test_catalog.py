"""The table of providers, and which of them `auto` takes."""

import pytest

from hermes.core.models.catalog import Catalog
from hermes.types.errors import ConfigError

CATALOG = Catalog.load()


def test_names_and_addresses_are_told_apart() -> None:
    names = [name for one in CATALOG.providers for name in (one.name, *one.aliases)]
    addresses = [one.base_url for one in CATALOG.providers]
    assert len(names) == len(set(names))
    assert len(addresses) == len(set(addresses))


@pytest.mark.parametrize("provider", CATALOG.providers, ids=lambda one: str(one.name))
def test_every_provider_can_be_reached(provider: object) -> None:
    one = next(item for item in CATALOG.providers if item is provider)
    assert one.label
    assert one.wire == "chat"
    assert one.name == "custom" or one.base_url.startswith("http")
    assert not one.base_url.endswith("/")
    assert bool(one.keys and one.default_model) or not one.key_required


def test_the_table_is_read_once() -> None:
    assert Catalog.load() is CATALOG


def test_a_provider_is_found_by_its_alias() -> None:
    assert CATALOG.named("Kimi").name == "moonshot"


def test_a_misspelt_provider_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'openrouter'"):
        CATALOG.named("openruoter")


def test_an_unknown_provider_lists_the_known() -> None:
    with pytest.raises(ConfigError, match="known are openrouter, openai"):
        CATALOG.named("zzzzzz")


def test_nothing_is_chosen_without_a_key() -> None:
    assert CATALOG.auto({}) is None
    assert CATALOG.auto({"OPENAI_API_KEY": "", "HERMES_CUSTOM_API_KEY": "k"}) is None


@pytest.mark.parametrize(
    ("names", "model", "expected"),
    [
        (["OPENAI_API_KEY"], "", "openai"),
        (["OPENAI_API_KEY", "OPENROUTER_API_KEY"], "openai/gpt-x", "openrouter"),
        (["OPENAI_API_KEY", "DEEPSEEK_API_KEY"], "deepseek/deepseek-chat", "deepseek"),
        (["OPENAI_API_KEY", "DEEPSEEK_API_KEY"], "gpt-x", "openai"),
        (["GROQ_API_KEY", "NOVITA_API_KEY"], "novita/openai/gpt-oss", "novita"),
        (["GOOGLE_API_KEY"], "", "gemini"),
    ],
)
def test_auto_takes_the_first_provider_with_a_key(
    names: list[str], model: str, expected: str
) -> None:
    chosen = CATALOG.auto(dict.fromkeys(names, "secret"), model)
    assert chosen is not None
    assert chosen.name == expected


@pytest.mark.parametrize(
    ("provider", "model", "expected"),
    [
        ("openai", "openai/gpt-x", "gpt-x"),
        ("openai", "gpt-x", "gpt-x"),
        ("openai", "", "gpt-5-mini"),
        ("openrouter", "openai/gpt-x", "openai/gpt-x"),
        ("openrouter", "openrouter/auto", "openrouter/auto"),
        ("openrouter", "openrouter/openai/gpt-x", "openai/gpt-x"),
        ("ollama", "", ""),
    ],
)
def test_a_model_is_named_as_its_provider_names_it(
    provider: str, model: str, expected: str
) -> None:
    assert CATALOG.named(provider).model(model) == expected


def test_an_address_is_known_with_and_without_its_last_slash() -> None:
    found = CATALOG.at("https://openrouter.ai/api/v1/")
    assert found is not None
    assert found.name == "openrouter"
    assert CATALOG.at("https://example.org/v1") is None


def test_the_environment_moves_a_provider() -> None:
    openai = CATALOG.named("openai")
    assert openai.address({"OPENAI_BASE_URL": "http://proxy/v1"}) == "http://proxy/v1"
    assert openai.address({}) == "https://api.openai.com/v1"
