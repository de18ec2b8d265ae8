"""A person can choose one of the offered models, by a name that the person types."""

from pathlib import Path

import pytest

from hermes.core.models.download import SMOLLM2
from hermes.core.models.model_cache import ListedModel
from hermes.settings import Settings, load
from hermes.testing.configured import models_of, offers_of
from hermes.types.errors import ConfigError
from hermes.types.offers import ModelName


def settings(home: Path, config: str = "", **environ: str) -> Settings:
    (home / "config.yaml").write_text(config, encoding="utf-8")
    return load(home, environ)


def test_every_provider_is_offered_and_its_missing_key_is_named(tmp_path: Path) -> None:
    found = {one.name: one for one in offers_of(settings(tmp_path, GROQ_API_KEY="k")).all()}
    assert found["groq"].ready
    assert found["groq"].key == "GROQ_API_KEY"
    assert not found["openai"].ready
    assert found["ollama"].ready
    assert found["ollama"].key == ""
    assert found["local"].endpoint is None, "there is nobody to ask"
    assert not found["custom"].ready


def test_the_endpoint_in_use_is_ready(tmp_path: Path) -> None:
    found = settings(tmp_path, "model: {default: m, base_url: 'http://x/v1', api_key: k}\n")
    custom = offers_of(found).of("custom")
    assert custom.ready
    assert custom.endpoint
    assert (custom.endpoint.base_url, custom.endpoint.api_key) == ("http://x/v1", "k")


def test_the_error_for_an_unknown_provider_suggests_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'groq'"):
        offers_of(settings(tmp_path)).of("gorq")
    with pytest.raises(ConfigError, match="'nope' is not supported: choose one of openrouter,"):
        offers_of(settings(tmp_path)).of("nope")


def test_lists_can_be_requested_from_the_provider_in_use_and_from_providers_with_a_key(
    tmp_path: Path,
) -> None:
    found = settings(tmp_path, "model: {provider: ollama, default: m}\n", GROQ_API_KEY="k")
    assert [endpoint.provider for endpoint in offers_of(found).endpoints()] == ["groq", "ollama"]
    assert offers_of(settings(tmp_path)).endpoints() == ()


@pytest.mark.parametrize(
    ("environ", "name", "expected"),
    [
        (["OPENAI_API_KEY"], "gpt-x", ModelName(model="gpt-x")),
        (["OPENAI_API_KEY"], "groq/a/b", ModelName(model="a/b", provider="groq")),
        (["OPENAI_API_KEY"], "kimi/k2", ModelName(model="k2", provider="moonshot")),
        (
            ["OPENAI_API_KEY"],
            "openrouter/auto",
            ModelName(model="openrouter/auto", provider="openrouter"),
        ),
        (["OPENAI_API_KEY"], "meta/llama", ModelName(model="meta/llama")),
        (["OPENROUTER_API_KEY"], "openai/gpt-x", ModelName(model="openai/gpt-x")),
        (["OPENROUTER_API_KEY"], "openrouter/a/b", ModelName(model="a/b", provider="openrouter")),
        (["OPENROUTER_API_KEY"], "groq/a/b", ModelName(model="a/b", provider="groq")),
        (["OPENROUTER_API_KEY"], "ollama/llama", ModelName(model="llama", provider="ollama")),
        (["OPENROUTER_API_KEY"], "nvidia/nemotron", ModelName(model="nvidia/nemotron")),
        (
            ["OPENROUTER_API_KEY", "NVIDIA_API_KEY"],
            "nvidia/n",
            ModelName(model="n", provider="nvidia"),
        ),
        (["OPENROUTER_API_KEY", "OPENAI_API_KEY"], "openai/gpt-x", ModelName(model="openai/gpt-x")),
        ([], "anthropic/claude-x", ModelName(model="claude-x", provider="anthropic")),
        ([], "gpt-x", ModelName(model="gpt-x")),
        ([], "local", ModelName(model="smollm2-135m-instruct", provider="local")),
    ],
)
def test_a_name_is_parsed_into_provider_and_model(
    tmp_path: Path, environ: list[str], name: str, expected: ModelName
) -> None:
    assert offers_of(settings(tmp_path, **dict.fromkeys(environ, "k"))).read_name(name) == expected


def test_the_model_list_decides_whether_a_slash_separates_a_provider(tmp_path: Path) -> None:
    found = settings(tmp_path, OPENROUTER_API_KEY="k", OPENAI_API_KEY="k")
    endpoint = offers_of(found).of("openrouter").endpoint
    assert endpoint
    models_of(found).cache.save(endpoint, (ListedModel(id="openai/gpt-x"),))
    assert offers_of(found).read_name("openai/gpt-x") == ModelName(model="openai/gpt-x")
    assert offers_of(found).read_name("openai/gpt-y") == ModelName(model="gpt-y", provider="openai")
    assert offers_of(found).read_name("anthropic/claude-y") == ModelName(model="anthropic/claude-y")


@pytest.mark.parametrize("provider", ["ollama", "groq", "openrouter"])
def test_custom_is_never_the_name_of_a_vendor(tmp_path: Path, provider: str) -> None:
    config = f"model: {{provider: {provider}, default: m, base_url: 'http://x/v1'}}\n"
    found = settings(tmp_path, config, GROQ_API_KEY="k", OPENROUTER_API_KEY="k")
    expected = ModelName(model="m2", provider="custom")
    assert offers_of(found).read_name("custom/m2") == expected


@pytest.mark.parametrize("name", ["", " ", "two words", "openai/"])
def test_text_that_is_not_a_model_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="is not the name of a model"):
        offers_of(settings(tmp_path)).read_name(name)


def test_a_given_provider_decides_how_a_name_is_parsed(tmp_path: Path) -> None:
    found = settings(tmp_path, OPENROUTER_API_KEY="k")
    assert offers_of(found).read_name("openai/x", "groq") == ModelName(
        model="openai/x", provider="groq"
    )


def test_a_model_file_is_named_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = settings(tmp_path)
    file = tmp_path / "some.gguf"
    missing = offers_of(found).read_name("some.gguf")
    assert missing == ModelName(model="some.gguf", provider="local")
    assert offers_of(found).why_unlikely(missing) == (
        "there is no model file 'some.gguf': give the path of a .gguf file, or provider/model;"
        " the files here are smollm2-135m-instruct"
    )
    file.touch()
    monkeypatch.chdir(tmp_path)
    assert offers_of(found).read_name("some.gguf") == ModelName(model=str(file), provider="local")
    assert offers_of(found).read_name(f"local/{file}") == ModelName(
        model=str(file), provider="local"
    )
    assert offers_of(found).why_unlikely(ModelName(model=str(file), provider="local")) == ""


def test_a_file_in_the_models_folder_is_found_by_its_name(tmp_path: Path) -> None:
    found = settings(tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "some.gguf").touch()
    SMOLLM2.path(tmp_path / "models").touch()
    assert offers_of(found).why_unlikely(ModelName(model="some.gguf", provider="local")) == ""
    assert [one.model for one in offers_of(found).models("local")] == [
        "smollm2-135m-instruct",
        "some.gguf",
    ]


def test_only_local_files_that_exist_can_be_used(tmp_path: Path) -> None:
    found = settings(tmp_path, "model: {provider: local}\n")
    assert "there is no model file 'nonsense'" in offers_of(found).why_unlikely(
        ModelName(model="nonsense")
    )
    assert offers_of(found).why_unlikely(ModelName(model="smollm2-135m-instruct")) == ""


def test_a_new_model_replaces_the_demo_model_with_the_provider_that_has_a_key(
    tmp_path: Path,
) -> None:
    config = "model: {provider: local}\n"
    found = settings(tmp_path, config, OPENAI_API_KEY="k")
    assert offers_of(found).read_name("gpt-x") == ModelName(model="gpt-x", provider="openai")
    assert offers_of(settings(tmp_path, config)).read_name("gpt-x") == ModelName(model="gpt-x")
    own = {"HERMES_CUSTOM_BASE_URL": "http://x/v1", "HERMES_MODEL": "m"}
    assert offers_of(settings(tmp_path, config, **own)).read_name("gpt-x") == ModelName(
        model="gpt-x"
    )


def test_a_new_model_replaces_the_demo_model_with_the_configured_address(tmp_path: Path) -> None:
    config = "model: {provider: local, default: smollm2-135m-instruct, base_url: 'http://x/v1'}\n"
    offers = offers_of(settings(tmp_path, config))
    meant = ModelName(model="llama3", provider="custom")
    assert offers.read_name("llama3") == meant
    assert offers.changes_provider(meant)
    assert offers.why_unlikely(meant) == ""
    left = "model: {provider: local, base_url: ''}\n"
    assert offers_of(settings(tmp_path, left)).read_name("llama3") == ModelName(model="llama3")


def test_the_demo_model_is_downloaded_if_its_file_is_complete(tmp_path: Path) -> None:
    found = settings(tmp_path)
    assert not offers_of(found).demo_is_downloaded()
    file = SMOLLM2.path(found.home.models)
    file.parent.mkdir()
    with file.open("wb") as opened:
        opened.truncate(SMOLLM2.size)
    assert offers_of(found).demo_is_downloaded()


def test_a_model_that_is_not_in_the_list_gets_a_warning(tmp_path: Path) -> None:
    found = settings(tmp_path, OPENAI_API_KEY="k")
    wrong = ModelName(model="gtp-5.6-luna")
    assert offers_of(found).why_unlikely(wrong) == "", "without a list nobody knows"
    endpoint = offers_of(found).of("openai").endpoint
    assert endpoint
    models_of(found).cache.save(endpoint, (ListedModel(id="gpt-5.6-luna"), ListedModel(id="o9")))
    assert [one.model for one in offers_of(found).listed(endpoint)] == ["gpt-5.6-luna", "o9"]
    expected = "openai does not list 'gtp-5.6-luna': did you mean 'gpt-5.6-luna'?"
    assert offers_of(found).why_unlikely(wrong) == expected
    assert offers_of(found).why_unlikely(ModelName(model="zzzz")) == "openai does not list 'zzzz'"
    assert offers_of(found).why_unlikely(ModelName(model="o9", provider="openai")) == ""
    assert offers_of(found).why_unlikely(ModelName(model="zzzz", provider="groq")) == ""
    assert offers_of(settings(tmp_path)).why_unlikely(wrong) == ""


def test_only_a_provider_other_than_the_configured_one_counts_as_a_change(tmp_path: Path) -> None:
    kimi = settings(tmp_path, "model: {provider: kimi}\n")
    assert not offers_of(kimi).changes_provider(ModelName(model="m", provider="moonshot"))
    assert offers_of(kimi).changes_provider(ModelName(model="m", provider="groq"))
    assert not offers_of(kimi).changes_provider(ModelName(model="m"))
    assert offers_of(settings(tmp_path)).changes_provider(ModelName(model="m", provider="groq"))
