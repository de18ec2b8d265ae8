"""The table of providers, and which of them `auto` takes."""

import pytest

from hermes.core.models.catalog import Catalog, Provider
from hermes.types.errors import ConfigError

CATALOG = Catalog.load()


def test_names_and_addresses_are_told_apart() -> None:
    names = [name for one in CATALOG.providers for name in (one.name, *one.aliases)]
    addresses = [one.base_url for one in CATALOG.providers if one.base_url]
    assert len(names) == len(set(names))
    assert len(addresses) == len(set(addresses))


@pytest.mark.parametrize("one", CATALOG.providers, ids=lambda one: str(one.name))
def test_every_provider_can_be_reached(one: Provider) -> None:
    assert one.label
    assert one.base_url.startswith("http") or one.name in ("custom", "local", "azure-foundry")
    assert not one.base_url.endswith("/")
    assert one.keys or not one.key_required
    assert one.default_model or one.base_url_env


@pytest.mark.parametrize("one", CATALOG.providers, ids=lambda one: str(one.name))
def test_a_small_model_is_another_than_the_default(one: Provider) -> None:
    assert one.small_model != one.default_model or not one.small_model


def test_models_are_named_as_they_are_looked_up() -> None:
    names = [one.name for one in CATALOG.models]
    assert len(names) == len(set(names))
    assert [name for name in names if name != name.casefold() or "." in name] == []


@pytest.mark.parametrize(
    ("model", "length", "dollars"),
    [
        ("claude-sonnet-5-5", 1_000_000, 2.0),
        ("anthropic/claude-sonnet-5.5", 1_000_000, 2.0),
        ("Claude-Opus-4-5-20251101", 200_000, 5.0),
        ("gpt-4o-2024-11-20", 128_000, 2.5),
        ("gpt-4o-mini", 128_000, 0.15),
        ("gpt-5.6-luna-fast", 1_050_000, None),
        ("gpt-5.6-luna:free", 1_050_000, None),
        ("claude-9-giant", 200_000, None),
    ],
)
def test_a_model_is_known_by_the_longest_name_and_priced_by_the_whole(
    model: str, length: int, dollars: float | None
) -> None:
    found = CATALOG.family(model)
    assert found
    assert found.context_length == length
    assert (found.price and found.price.input) == dollars


def test_an_open_model_is_nobodys_family() -> None:
    assert CATALOG.family("openai/gpt-oss-120b") is None
    assert CATALOG.family("") is None


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
    assert CATALOG.auto({"AZURE_FOUNDRY_API_KEY": "k"}) is None, "it has no address of its own"
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
        (["ANTHROPIC_TOKEN", "HF_TOKEN"], "", "anthropic"),
        (["OPENAI_API_KEY"], "~/models/some.gguf", "local"),
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
        ("openai", "", "gpt-5.6-terra"),
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


def test_the_first_key_that_is_set_counts() -> None:
    moonshot = CATALOG.named("moonshot")
    environ = {"KIMI_API_KEY": "", "MOONSHOT_API_KEY": "k"}
    assert moonshot.key_name(environ) == "MOONSHOT_API_KEY"
    assert moonshot.key(environ) == "k"
    assert moonshot.key({}) == ""


def test_a_provider_is_ready_when_nothing_is_missing() -> None:
    azure = CATALOG.named("azure")
    address = {"AZURE_FOUNDRY_BASE_URL": "https://a/openai/v1"}
    assert not azure.ready(address)
    assert azure.ready({**address, "AZURE_FOUNDRY_API_KEY": "k"})
    assert CATALOG.named("local").ready({})
    assert CATALOG.named("ollama").ready({})
    assert not CATALOG.named("custom").ready({})
