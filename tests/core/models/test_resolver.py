"""The models that a configuration names: the main model, the auxiliary model and the fallbacks."""

from pathlib import Path

import pytest

from hermes.core.models.openai_chat import OpenAIChat
from hermes.core.models.registry import ModelRegistry
from hermes.core.models.resolver import ConfiguredModels
from hermes.settings import Settings, load
from hermes.settings.models import model_config
from hermes.testing.configured import models_of
from hermes.types.errors import ConfigError
from hermes.types.profile import ModelChoice
from hermes.types.providers import Provider

OPENAI = "https://api.openai.com/v1"
GROQ = "https://api.groq.com/openai/v1"


def settings(home: Path, config: str = "", **environ: str) -> Settings:
    (home / "config.yaml").write_text(config, encoding="utf-8")
    return load(home, environ)


def choice(home: Path, config: str = "", **environ: str) -> tuple[str, str, str, str] | None:
    found = models_of(settings(home, config, **environ)).main()
    return place(found) if found else None


def place(choice: ModelChoice) -> tuple[str, str, str, str]:
    return choice.provider, choice.model, choice.base_url, choice.api_key


def test_without_configuration_there_is_no_model(tmp_path: Path) -> None:
    assert choice(tmp_path) is None


def test_an_openai_key_alone_means_openai(tmp_path: Path) -> None:
    expected = ("openai", "gpt-x", "https://api.openai.com/v1", "k")
    assert choice(tmp_path, "model: openai/gpt-x\n", OPENAI_API_KEY="k") == expected


def test_a_base_url_alone_means_a_custom_endpoint(tmp_path: Path) -> None:
    config = "model: {default: m, base_url: 'http://x/v1/', api_key: k}\n"
    assert choice(tmp_path, config) == ("custom", "m", "http://x/v1", "k")


def test_the_key_of_a_known_provider_is_used_at_its_address(tmp_path: Path) -> None:
    url = "https://openrouter.ai/api/v1"
    config = f"model: {{default: a/b, provider: auto, base_url: '{url}'}}\n"
    assert choice(tmp_path, config, OPENROUTER_API_KEY="k") == ("openrouter", "a/b", url, "k")


def test_a_custom_endpoint_in_the_environment_takes_precedence_over_the_file(
    tmp_path: Path,
) -> None:
    config = "model: {default: m, provider: openai, api_key: of-openai}\n"
    environ = {"HERMES_CUSTOM_BASE_URL": "http://y/v1", "HERMES_CUSTOM_API_KEY": "k2"}
    assert choice(tmp_path, config, **environ) == ("custom", "m", "http://y/v1", "k2")


def test_a_key_from_the_file_is_never_sent_to_an_address_from_the_environment(
    tmp_path: Path,
) -> None:
    config = "model: {default: m, base_url: 'http://x/v1', api_key: of-x}\n"
    found = choice(tmp_path, config, HERMES_CUSTOM_BASE_URL="http://y/v1")
    assert found == ("custom", "m", "http://y/v1", "")


def test_a_key_that_is_stored_for_one_address_is_not_sent_to_another(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("HERMES_CUSTOM_API_KEY=of-x\n", encoding="utf-8")
    stored = "model: {default: m, base_url: 'http://x/v1'}\n"
    other = {"HERMES_CUSTOM_BASE_URL": "http://y/v1"}
    assert choice(tmp_path, stored) == ("custom", "m", "http://x/v1", "of-x")
    assert choice(tmp_path, stored, **other) == ("custom", "m", "http://y/v1", "")
    same = {"HERMES_CUSTOM_BASE_URL": "http://x/v1/"}
    assert choice(tmp_path, stored, **same) == ("custom", "m", "http://x/v1", "of-x")
    kept = "model: {default: m, provider: openai, custom_base_url: 'http://x/v1'}\n"
    assert choice(tmp_path, kept, **other) == ("custom", "m", "http://y/v1", "")
    chosen = models_of(settings(tmp_path, stored, **other)).explain_main()
    assert chosen
    reason = f"the key in {tmp_path / '.env'} HERMES_CUSTOM_API_KEY is for another address"
    assert (chosen.sources["api_key"], chosen.choice.key_place) == (reason, reason)


def test_an_address_and_a_key_that_belong_together_are_used_together(tmp_path: Path) -> None:
    dotenv, config = tmp_path / ".env", "model: {default: m, base_url: 'http://x/v1'}\n"
    dotenv.write_text("HERMES_CUSTOM_API_KEY=of-x\n", encoding="utf-8")
    address = {"HERMES_CUSTOM_BASE_URL": "http://y/v1"}
    both = {**address, "HERMES_CUSTOM_API_KEY": "of-y"}
    assert choice(tmp_path, config, **both) == ("custom", "m", "http://y/v1", "of-y")
    assert choice(tmp_path, "model: m\n", **address) == ("custom", "m", "http://y/v1", "of-x")
    dotenv.write_text("".join(f"{name}={value}\n" for name, value in both.items()), "utf-8")
    assert choice(tmp_path, config) == ("custom", "m", "http://y/v1", "of-y")


def test_the_key_of_an_auxiliary_endpoint_is_not_sent_to_another(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("HERMES_AUXILIARY_API_KEY=of-y\n", encoding="utf-8")
    config = "auxiliary: {model: a, base_url: 'http://y/v1'}\n"
    assert auxiliary(tmp_path, config) == ("custom", "a", "http://y/v1", "of-y")
    environ = {"HERMES_AUXILIARY_BASE_URL": "http://z/v1"}
    assert auxiliary(tmp_path, config, **environ) == ("custom", "a", "http://z/v1", "")


def test_a_provider_in_the_environment_replaces_the_endpoint_of_the_file(tmp_path: Path) -> None:
    config = "model: {default: m, provider: custom, base_url: 'http://x/v1', api_key: of-x}\n"
    environ = {"HERMES_INFERENCE_PROVIDER": "openai", "OPENAI_API_KEY": "k"}
    assert choice(tmp_path, config, **environ) == ("openai", "m", "https://api.openai.com/v1", "k")


def test_a_named_provider_may_have_another_address(tmp_path: Path) -> None:
    config = "model: {default: m, provider: openai, base_url: 'http://proxy/v1'}\n"
    assert choice(tmp_path, config, OPENAI_API_KEY="k") == ("openai", "m", "http://proxy/v1", "k")
    config = "model: {default: m, provider: openai}\n"
    environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://other/v1"}
    assert choice(tmp_path, config, **environ) == ("openai", "m", "http://other/v1", "k")


def test_a_local_server_needs_no_key(tmp_path: Path) -> None:
    config = "model: {default: llama3, provider: ollama}\n"
    assert choice(tmp_path, config) == ("ollama", "llama3", "http://127.0.0.1:11434/v1", "")


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("model: {provider: groq}", r"Groq needs a key: set GROQ_API_KEY in .*\.env"),
        ("model: {provider: custom}", r"model\.base_url is empty"),
        ("model: {provider: ollama}", r"set model\.default in .*config\.yaml"),
        ("model: {provider: opnai}", "did you mean 'openai'"),
    ],
)
def test_the_error_for_an_unusable_model_says_what_to_do(
    tmp_path: Path, config: str, expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected):
        choice(tmp_path, config)


def test_a_missing_address_is_an_error(tmp_path: Path) -> None:
    config = "model: {provider: azure, default: m}\n"
    with pytest.raises(ConfigError, match=r"needs an address: set AZURE_FOUNDRY_BASE_URL in .*env"):
        choice(tmp_path, config, AZURE_FOUNDRY_API_KEY="k")
    environ = {"AZURE_FOUNDRY_API_KEY": "k", "AZURE_FOUNDRY_BASE_URL": "https://a/openai/v1/"}
    expected = ("azure-foundry", "m", "https://a/openai/v1", "k")
    assert choice(tmp_path, config, **environ) == expected


def test_a_model_file_is_run_by_the_embedded_engine(tmp_path: Path) -> None:
    expected = ("local", str(Path("~/m/some.gguf").expanduser()), "", "")
    assert choice(tmp_path, "model: {provider: local, default: ~/m/some.gguf}\n") == expected
    assert choice(tmp_path, "model: ~/m/some.gguf\n", OPENAI_API_KEY="k") == expected


def test_the_embedded_model_has_no_tools_and_a_small_window(tmp_path: Path) -> None:
    found = models_of(settings(tmp_path, "model: {provider: local}\n")).main()
    assert found
    assert (found.model, found.tools, found.context_length) == (
        "smollm2-135m-instruct",
        False,
        2048,
    )


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("model: {provider: local}", ("openai", "gpt-5.6-terra", OPENAI, "k")),
        ("model: {provider: local, default: smollm2-135m-instruct}",
         ("openai", "gpt-5.6-terra", OPENAI, "k")),
        ("model: {provider: local, default: local/smollm2-135m-instruct}",
         ("openai", "gpt-5.6-terra", OPENAI, "k")),
        ("model: {provider: local, default: gpt-x}", ("openai", "gpt-x", OPENAI, "k")),
        ("model: {provider: local, default: /own.gguf}", ("local", "/own.gguf", "", "")),
        ("model: {provider: ollama, default: m}",
         ("ollama", "m", "http://127.0.0.1:11434/v1", "")),
    ],
)  # fmt: skip
def test_a_key_replaces_the_demo_model(
    tmp_path: Path, config: str, expected: tuple[str, str, str, str]
) -> None:
    assert choice(tmp_path, config, OPENAI_API_KEY="k") == expected


def test_an_address_replaces_the_demo_model(tmp_path: Path) -> None:
    config = "model:\n  provider: local\n  base_url: http://x/v1\n"
    with pytest.raises(ConfigError, match="no model is named for Any other endpoint"):
        choice(tmp_path, f"{config}  default: smollm2-135m-instruct\n")
    chosen = models_of(settings(tmp_path, f"{config}  default: m\n")).explain_main()
    assert chosen
    assert place(chosen.choice) == ("custom", "m", "http://x/v1", "")
    written = tmp_path / "config.yaml"
    assert chosen.sources["provider"] == (
        f"the address in {written} line 3, instead of the demo model of {written} line 2"
    )
    own_file = models_of(settings(tmp_path, f"{config}  default: /own.gguf\n")).main()
    assert own_file
    assert own_file.provider == "local"


def test_the_demo_model_is_kept_if_the_environment_or_a_request_names_it(tmp_path: Path) -> None:
    environ = {"OPENAI_API_KEY": "k", "HERMES_INFERENCE_PROVIDER": "local"}
    demo = ("local", "smollm2-135m-instruct", "", "")
    assert choice(tmp_path, "model: {provider: local}\n", **environ) == demo
    found = settings(tmp_path, "model: {provider: local}\n", OPENAI_API_KEY="k")
    assert place(models_of(found).named("local")) == demo


def test_the_source_mentions_a_key_that_replaces_the_demo_model(tmp_path: Path) -> None:
    chosen = models_of(
        settings(tmp_path, "model:\n  provider: local\n", GROQ_API_KEY="k")
    ).explain_main()
    assert chosen
    assert chosen.sources["provider"] == (
        "the first key found, environment GROQ_API_KEY,"
        f" instead of the demo model of {tmp_path / 'config.yaml'} line 2"
    )
    assert chosen.sources["model"] == "the default of Groq"


@pytest.mark.parametrize(
    ("config", "environ", "wire"),
    [
        ("model: {provider: anthropic}", {}, "anthropic"),
        ("model: {provider: anthropic, base_url: 'http://proxy'}", {}, "anthropic"),
        ("model: {provider: openai}", {}, "responses"),
        ("model: {provider: openai}", {"OPENAI_BASE_URL": f"{OPENAI}/"}, "responses"),
        ("model: {provider: openai}", {"OPENAI_BASE_URL": "http://proxy/v1"}, "chat"),
        ("model: {provider: openai, wire: chat}", {}, "chat"),
        ("model: {default: m, base_url: 'http://x/v1'}", {}, "chat"),
        ("model: {default: m, base_url: 'http://x/v1', wire: anthropic}", {}, "anthropic"),
    ],
)
def test_the_wire_format_of_the_provider_is_used_unless_another_is_set(
    tmp_path: Path, config: str, environ: dict[str, str], wire: str
) -> None:
    keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
    found = models_of(settings(tmp_path, config, **keys, **environ)).main()
    assert found
    assert found.wire == wire


def test_every_property_of_a_model_has_a_source(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("GROQ_API_KEY=k\n", encoding="utf-8")
    chosen = models_of(
        settings(tmp_path, "model:\n  provider: groq\n", HERMES_MODEL="a/b")
    ).explain_main()
    assert chosen
    assert chosen.sources["model"] == "environment HERMES_MODEL"
    assert chosen.sources["provider"] == f"{tmp_path / 'config.yaml'} line 2"
    assert chosen.sources["api_key"] == f"{tmp_path / '.env'} GROQ_API_KEY"
    assert chosen.sources["base_url"] == "usual for Groq"
    assert chosen.sources["wire"] == "usual for Groq"


def test_a_model_that_is_chosen_by_a_key_names_its_sources(tmp_path: Path) -> None:
    environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://proxy/v1"}
    chosen = models_of(settings(tmp_path, **environ)).explain_main()
    assert chosen
    assert chosen.sources["model"] == "the default of OpenAI"
    assert chosen.sources["provider"] == "the first key found, environment OPENAI_API_KEY"
    assert chosen.sources["base_url"] == "environment OPENAI_BASE_URL"
    assert chosen.sources["wire"] == "usual for another address"


def test_a_model_at_a_custom_endpoint_names_its_sources(tmp_path: Path) -> None:
    config = "model:\n  base_url: http://x/v1\n  api_key: k\n  default: m\n  wire: responses\n"
    chosen = models_of(settings(tmp_path, config)).explain_main()
    assert chosen
    where = str(tmp_path / "config.yaml")
    assert chosen.sources["provider"] == f"the address in {where} line 2"
    assert chosen.sources["base_url"] == f"{where} line 2"
    assert chosen.sources["api_key"] == f"{where} line 3"
    assert chosen.sources["wire"] == f"{where} line 5"


def auxiliary(home: Path, config: str = "", **environ: str) -> tuple[str, str, str, str] | None:
    found = models_of(settings(home, config, **environ)).auxiliary()
    return place(found) if found else None


@pytest.mark.parametrize("provider", ["", "auto", "main"])
def test_by_default_the_main_model_is_also_the_auxiliary_model(
    tmp_path: Path, provider: str
) -> None:
    environ = {"OPENAI_API_KEY": "k", "HERMES_AUXILIARY_PROVIDER": provider}
    assert auxiliary(tmp_path, **environ) is None


def test_an_auxiliary_provider_alone_means_its_small_model(tmp_path: Path) -> None:
    environ = {"OPENAI_API_KEY": "k", "GROQ_API_KEY": "k2", "HERMES_AUXILIARY_PROVIDER": "groq"}
    assert auxiliary(tmp_path, **environ) == ("groq", "openai/gpt-oss-20b", GROQ, "k2")
    environ["HERMES_AUXILIARY_PROVIDER"] = "openai"
    assert auxiliary(tmp_path, **environ) == ("openai", "gpt-5.6-luna", OPENAI, "k")


def test_an_auxiliary_provider_without_a_small_model_uses_its_default(tmp_path: Path) -> None:
    environ = {"XAI_API_KEY": "k", "HERMES_AUXILIARY_PROVIDER": "xai"}
    assert auxiliary(tmp_path, "model: grok-x\n", **environ) == (
        "xai",
        "grok-4.5",
        "https://api.x.ai/v1",
        "k",
    )


def test_an_auxiliary_model_without_a_provider_belongs_to_the_main_provider(tmp_path: Path) -> None:
    config = "model: {default: m, base_url: 'http://x/v1', api_key: k, wire: responses}\n"
    config += "auxiliary: {model: small}\n"
    assert auxiliary(tmp_path, config) == ("custom", "small", "http://x/v1", "k")
    chosen = models_of(settings(tmp_path, config)).explain_auxiliary()
    assert chosen
    assert chosen.choice.wire == "responses"
    assert chosen.sources["model"] == f"{tmp_path / 'config.yaml'} line 2"
    assert auxiliary(tmp_path, "auxiliary: {model: small}\n") is None, "there is no provider"


def test_the_main_endpoint_may_be_named_as_the_auxiliary_provider(tmp_path: Path) -> None:
    environ = {
        "HERMES_CUSTOM_BASE_URL": "http://x/v1",
        "HERMES_CUSTOM_API_KEY": "k",
        "HERMES_DEFAULT_MODEL": "m",
        "HERMES_AUXILIARY_PROVIDER": "custom",
    }
    assert auxiliary(tmp_path, **environ) == ("custom", "m", "http://x/v1", "k")


def test_the_key_of_one_endpoint_is_not_sent_to_another(tmp_path: Path) -> None:
    environ = {"HERMES_CUSTOM_BASE_URL": "http://x/v1", "HERMES_CUSTOM_API_KEY": "k"}
    config = "model: m\nauxiliary: {model: a, base_url: 'http://y/v1'}\n"
    assert auxiliary(tmp_path, config, **environ) == ("custom", "a", "http://y/v1", "")
    config = "model: m\nauxiliary: {model: a, base_url: 'http://y/v1', api_key: k2}\n"
    assert auxiliary(tmp_path, config, **environ) == ("custom", "a", "http://y/v1", "k2")


def test_the_error_for_an_auxiliary_endpoint_without_a_model_says_what_to_do(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError, match=r"set auxiliary\.model in .*, or HERMES_AUXILIARY_MODEL"):
        auxiliary(tmp_path, "auxiliary: {base_url: 'http://y/v1'}\n")


def test_fallbacks_are_resolved_in_their_order(tmp_path: Path) -> None:
    config = "model: {provider: openai, fallbacks: [groq/a/b, openai/gpt-x, ollama/llama, groq]}\n"
    found = models_of(settings(tmp_path, config, OPENAI_API_KEY="k", GROQ_API_KEY="k2")).fallbacks()
    assert list(map(place, found)) == [
        ("groq", "a/b", GROQ, "k2"),
        ("openai", "gpt-x", OPENAI, "k"),
        ("ollama", "llama", "http://127.0.0.1:11434/v1", ""),
        ("groq", "openai/gpt-oss-120b", GROQ, "k2"),
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("groq/a/b", r"'groq/a/b' can't be used: Groq needs a key: set GROQ_API_KEY"),
        (
            "gorq/a",
            r"'gorq/a' can't be used: provider 'gorq' is not supported: did you mean 'groq'",
        ),
        ("ollama", r"'ollama' can't be used: 'ollama' names no model: write ollama/MODEL"),
        ("custom/m", r"'custom/m' can't be used: Any other endpoint needs an address"),
    ],
)
def test_the_error_names_a_fallback_that_can_not_work(
    tmp_path: Path, name: str, expected: str
) -> None:
    config = f"model: {{provider: openai, fallbacks: ['openai/x', '{name}']}}\n"
    with pytest.raises(ConfigError, match=expected):
        models_of(settings(tmp_path, config, OPENAI_API_KEY="k")).fallbacks()


def test_another_model_of_the_main_provider_is_called_at_the_same_address(tmp_path: Path) -> None:
    config = "model: {default: m, base_url: 'http://x/v1', api_key: k, max_tokens: 9}\n"
    found = settings(tmp_path, config)
    assert place(models_of(found).named("custom/other")) == ("custom", "other", "http://x/v1", "k")
    assert models_of(found).named("custom/other").max_tokens is None
    assert models_of(found).named("custom/m") == models_of(found).main()


def test_a_default_model_that_begins_with_its_provider_is_kept_complete(tmp_path: Path) -> None:
    found = settings(tmp_path, OPENROUTER_API_KEY="k")
    assert models_of(found).named("openrouter/auto").model == "openrouter/auto"
    assert models_of(found).named("openrouter/a/b").model == "a/b"


def test_another_model_can_be_chosen_even_if_the_main_model_can_not_work(tmp_path: Path) -> None:
    found = settings(tmp_path, "model: {provider: groq}\n", OPENAI_API_KEY="k")
    assert place(models_of(found).named("openai/gpt-x")) == ("openai", "gpt-x", OPENAI, "k")


def test_the_error_for_an_unknown_wire_format_lists_the_known_formats(tmp_path: Path) -> None:
    config = "model: {default: m, base_url: 'http://x/v1', wire: morse}\n"
    expected = "wire format 'morse' is unknown: choose one of chat, responses, anthropic"
    with pytest.raises(ConfigError, match=expected):
        models_of(settings(tmp_path, config)).main()


class Telegraph(OpenAIChat):
    name = "telegraph"


ACME = Provider(
    name="acme",
    label="Acme",
    base_url="http://acme/v1",
    keys=("ACME_KEY",),
    default_model="big",
    wire="telegraph",
)


def test_a_plugin_adds_a_provider_with_a_wire_format(tmp_path: Path) -> None:
    config = model_config(settings(tmp_path, "model: {fallbacks: [acme/small]}\n", ACME_KEY="k"))
    models = ConfiguredModels(config, ModelRegistry.of([Telegraph(), ACME]))
    found = models.main()
    assert found
    assert (*place(found), found.wire) == ("acme", "big", "http://acme/v1", "k", "telegraph")
    (fallback,) = models.fallbacks()
    assert fallback.model == "small"
    without = ConfiguredModels(config, ModelRegistry.of([ACME]))
    with pytest.raises(ConfigError, match="'telegraph' is unknown"):
        without.main()


def test_the_model_choice_contains_the_quirks_of_its_provider(tmp_path: Path) -> None:
    keys = {"OPENAI_API_KEY": "k", "MISTRAL_API_KEY": "k"}
    at_home = models_of(settings(tmp_path, "model: {provider: openai}\n", **keys))
    moved = models_of(settings(tmp_path, OPENAI_BASE_URL="http://proxy/v1", **keys))
    assert at_home.named("mistral/m").quirks.call_id_length == 9
    assert at_home.named("openai/gpt-4o").quirks.reasoning == "none"
    assert at_home.named("openai/m").quirks.max_tokens_field == "max_completion_tokens"
    assert moved.named("openai/m").quirks.max_tokens_field == ""


def test_the_error_of_an_auxiliary_section_names_its_own_variable(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"base_url is empty.*HERMES_AUXILIARY_BASE_URL"):
        auxiliary(tmp_path, "auxiliary: {provider: custom}\n")


def test_a_request_may_use_no_file_outside_the_folder_of_models(tmp_path: Path) -> None:
    models = models_of(settings(tmp_path))
    assert models.requested("local/own.gguf").model == "own.gguf"
    with pytest.raises(ConfigError, match="is not a model in"):
        models.requested("local//etc/own.gguf")
    with pytest.raises(ConfigError, match="is not a model in"):
        models.requested("local/../own.gguf")


def test_only_the_embedded_model_is_the_demo_model(tmp_path: Path) -> None:
    models = models_of(settings(tmp_path, OPENAI_API_KEY="k"))
    assert models.is_demo(models.named("local"))
    assert not models.is_demo(models.named("local/own.gguf"))
    assert not models.is_demo(models.named("openai"))


def test_the_advice_names_the_key_of_the_first_provider(tmp_path: Path) -> None:
    models = models_of(settings(tmp_path))
    assert models.example_key == "OPENROUTER_API_KEY"
    assert "hermes config set OPENROUTER_API_KEY KEY" in models.advice


def test_keys_are_not_shown(tmp_path: Path) -> None:
    config = "model: {default: m, base_url: 'http://x/v1', api_key: opensesame}\n"
    shown = model_config(settings(tmp_path, config, OPENAI_API_KEY="opensesame"))
    assert "opensesame" not in f"{shown!r} {shown.main!r}"
