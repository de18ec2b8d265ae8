"""The table of providers is consistent, and `auto` chooses a provider that has a key."""

import msgspec
import pytest
from msgspec.structs import replace

from hermes.core.models.catalog import LOCAL, Catalog
from hermes.core.models.local import EMBEDDED
from hermes.core.models.wires import builtin_wire_formats, wire_formats
from hermes.types.errors import ConfigError
from hermes.types.profile import Quirks
from hermes.types.providers import CUSTOM, Provider

CATALOG = Catalog.load()


def test_names_and_addresses_of_providers_are_unique() -> None:
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
    assert one.wire in wire_formats(builtin_wire_formats())
    assert not one.custom_address_provider or CATALOG.find(one.custom_address_provider)
    assert one.default_model or one.base_url_env


@pytest.mark.parametrize("one", CATALOG.providers, ids=lambda one: str(one.name))
def test_a_small_model_differs_from_the_default_model(one: Provider) -> None:
    assert one.small_model != one.default_model or not one.small_model


def test_names_of_models_are_unique_and_lower_case_and_have_no_dots() -> None:
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
def test_a_model_is_found_by_the_longest_prefix_and_priced_by_its_full_name(
    model: str, length: int, dollars: float | None
) -> None:
    found = CATALOG.family(model)
    assert found
    assert found.context_length == length
    assert (found.price and found.price.input) == dollars


def test_an_open_model_belongs_to_no_model_family() -> None:
    assert CATALOG.family("openai/gpt-oss-120b") is None
    assert CATALOG.family("") is None


def test_the_table_is_read_once() -> None:
    assert Catalog.load() is CATALOG


def test_a_provider_is_found_by_its_alias() -> None:
    assert CATALOG.named("Kimi").name == "moonshot"


def test_the_error_for_a_misspelt_provider_suggests_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="did you mean 'openrouter'"):
        CATALOG.named("openruoter")


def test_the_error_for_an_unknown_provider_lists_the_known_providers() -> None:
    with pytest.raises(ConfigError, match="choose one of openrouter, openai"):
        CATALOG.named("zzzzzz")


def test_no_provider_is_chosen_without_a_key() -> None:
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
def test_auto_chooses_the_first_provider_with_a_key(
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
def test_a_model_has_the_name_that_its_provider_uses(
    provider: str, model: str, expected: str
) -> None:
    assert CATALOG.named(provider).model(model) == expected


def test_a_provider_is_recognised_by_its_address_with_and_without_the_last_slash() -> None:
    found = CATALOG.at("https://openrouter.ai/api/v1/")
    assert found is not None
    assert found.name == "openrouter"
    assert CATALOG.at("https://example.org/v1") is None


def test_an_environment_variable_overrides_the_address_of_a_provider() -> None:
    openai = CATALOG.named("openai")
    assert openai.address({"OPENAI_BASE_URL": "http://proxy/v1"}) == "http://proxy/v1"
    assert openai.address({}) == "https://api.openai.com/v1"


def test_the_first_key_that_is_set_is_used() -> None:
    moonshot = CATALOG.named("moonshot")
    environ = {"KIMI_API_KEY": "", "MOONSHOT_API_KEY": "k"}
    assert moonshot.key_variable(environ) == "MOONSHOT_API_KEY"
    assert moonshot.key(environ) == "k"
    assert moonshot.key({}) == ""


def test_a_provider_is_ready_with_an_address_and_a_key() -> None:
    azure = CATALOG.named("azure")
    address = {"AZURE_FOUNDRY_BASE_URL": "https://a/openai/v1"}
    assert not azure.ready(address)
    assert azure.ready({**address, "AZURE_FOUNDRY_API_KEY": "k"})
    assert CATALOG.named("local").ready({})
    assert CATALOG.named("ollama").ready({})
    assert not CATALOG.named("custom").ready({})


def test_the_embedded_model_is_the_default_model_of_the_local_provider() -> None:
    local = CATALOG.named(LOCAL)
    assert (local.default_model, local.embedded) == (EMBEDDED, True)


@pytest.mark.parametrize("one", CATALOG.providers, ids=lambda one: str(one.name))
def test_extra_fields_are_a_json_object(one: Provider) -> None:
    if extra := one.quirks.extra_body:
        assert msgspec.json.decode(extra, type=dict[str, object])
        assert extra == extra.strip()


@pytest.mark.parametrize(
    ("model", "reasoning"),
    [
        ("gpt-4o", "none"),
        ("gpt-4.1-mini", "none"),
        ("chatgpt-4o-latest", "none"),
        ("gpt-5.6-terra", "budget"),
        ("claude-opus-4-7", "effort"),
        ("claude-sonnet-5", "effort"),
        ("claude-fable-5-2", "effort"),
        ("claude-opus-10", "effort"),
        ("claude-sonnet-4-6", "budget"),
        ("claude-opus-4-20250514", "budget"),
        ("claude-3-7-sonnet", "budget"),
        ("glm-5", "budget"),
    ],
)
def test_the_reasoning_style_is_found_by_the_name_of_the_model(model: str, reasoning: str) -> None:
    assert CATALOG.quirks(CATALOG.named(CUSTOM), model, "chat").reasoning == reasoning


def test_extra_fields_are_for_the_wire_format_of_the_provider() -> None:
    router = CATALOG.named("openrouter")
    assert CATALOG.quirks(router, "m", "chat").extra_body == '{"usage":{"include":true}}'
    assert CATALOG.quirks(router, "m", "anthropic").extra_body == ""


def test_the_quirks_of_our_providers_are_known() -> None:
    found = {one.name: one.quirks for one in CATALOG.providers if one.quirks != Quirks()}
    assert found == {
        "openrouter": Quirks(extra_body='{"usage":{"include":true}}'),
        "openai": Quirks(max_tokens_field="max_completion_tokens"),
        "gemini": Quirks(list_prefix="models/"),
        "mistral": Quirks(call_id_length=9),
        "anthropic": Quirks(structured=("json_schema",)),
        "lmstudio": Quirks(structured=("json_schema",)),
        "alibaba": Quirks(structured=("json_object",)),
        "deepseek": Quirks(structured=("json_object",)),
        "moonshot": Quirks(structured=("json_object",)),
        "zai": Quirks(structured=("json_object",)),
        "cerebras": Quirks(structured=()),
        "groq": Quirks(structured=()),
        "minimax": Quirks(structured=()),
    }


def test_a_provider_may_behave_like_another_at_a_different_address() -> None:
    openai, groq = CATALOG.named("openai"), CATALOG.named("groq")
    assert CATALOG.behaviour(openai, f"{openai.base_url}/") == openai
    assert CATALOG.behaviour(openai, "http://proxy/v1") == CATALOG.named(CUSTOM)
    assert CATALOG.behaviour(groq, "http://proxy/v1") == groq


ACME = Provider(name="acme", label="Acme", base_url="http://acme/v1", keys=("ACME_KEY",))


def test_a_plugin_adds_a_provider() -> None:
    extended = CATALOG.extended([ACME])
    assert extended.named("acme") == ACME
    assert extended.auto({"ACME_KEY": "k"}) == ACME
    assert "ACME_KEY" in extended.variables
    assert CATALOG.find("acme") is None


@pytest.mark.parametrize("taken", [{"name": "openai"}, {"aliases": ("claude",)}])
def test_two_providers_can_not_have_the_same_name(taken: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"a plugin adds the provider '.*', which already exists"):
        CATALOG.extended([replace(ACME, **taken)])
    with pytest.raises(ConfigError, match="'acme', which already exists"):
        CATALOG.extended([ACME, ACME])
