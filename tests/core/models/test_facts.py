"""Each known fact about a chosen model has a source."""

from pathlib import Path

import pytest

from hermes.core.models.model_cache import ListedModel
from hermes.settings import Settings, load
from hermes.testing.configured import models_of
from hermes.types.errors import ConfigError
from hermes.types.offers import ChosenModel
from hermes.types.profile import Price


def settings(home: Path, config: str, **environ: str) -> Settings:
    (home / "config.yaml").write_text(config, encoding="utf-8")
    return load(home, {"OPENROUTER_API_KEY": "k", **environ})


def chosen(found: Settings) -> ChosenModel:
    explained = models_of(found).explain_main()
    assert explained
    return explained


def test_context_length_and_price_come_from_the_table(tmp_path: Path) -> None:
    found = chosen(settings(tmp_path, "model: anthropic/claude-sonnet-5.5\n"))
    assert found.choice.context_length == 1_000_000
    assert found.choice.price == Price(input=2.0, output=10.0, cached=0.1)
    assert found.sources["context_length"] == found.sources["price"] == "the table of models"


def test_an_unknown_fact_has_no_source(tmp_path: Path) -> None:
    found = chosen(settings(tmp_path, "model: a/b\n"))
    assert (found.choice.context_length, found.choice.price) == (None, None)
    assert not {"context_length", "price", "max_tokens"} & found.sources.keys()


def test_a_provider_may_have_a_default_context_length(tmp_path: Path) -> None:
    found = chosen(settings(tmp_path, "model: {provider: groq, default: a/b}\n", GROQ_API_KEY="k"))
    assert found.choice.context_length == 131_072
    assert found.sources["context_length"] == "usual for Groq"


def test_the_providers_list_takes_precedence_over_the_table(tmp_path: Path) -> None:
    found = settings(tmp_path, "model: anthropic/claude-sonnet-5.5\n")
    place = models_of(found).main()
    assert place
    price = Price(input=7.0, output=8.0)
    listed = ListedModel(id="anthropic/claude-sonnet-5.5", context_length=500, price=price)
    models_of(found).cache.save(place, (ListedModel(id="other"), listed))
    assert (tmp_path / "cache" / "models" / "openrouter.json").exists()
    explained = chosen(found)
    assert explained.choice.context_length == 500
    assert explained.choice.price == price
    assert explained.sources["price"] == "the list of OpenRouter"


def test_the_settings_take_precedence_over_all_other_sources(tmp_path: Path) -> None:
    config = "model:\n  default: anthropic/claude-sonnet-5.5\n  context_length: 5\n"
    config += "  max_tokens: 6\n  input_price: 7\n  output_price: 0\n"
    found = chosen(settings(tmp_path, config))
    assert (found.choice.context_length, found.choice.max_tokens) == (5, 6)
    assert found.choice.price == Price(input=7.0, output=0.0)
    where = str(tmp_path / "config.yaml")
    assert found.sources["context_length"] == f"{where} line 3"
    assert found.sources["max_tokens"] == f"{where} line 4"
    assert found.sources["price"] == f"{where} line 6"


@pytest.mark.parametrize(
    ("model", "given", "expected"),
    [
        ("claude-sonnet-5-5", "output_price: 1", Price(input=2.0, output=1.0, cached=0.1)),
        ("claude-sonnet-5-5", "input_price: 1", Price(input=1.0, output=10.0)),
        ("unknown", "input_price: 1", None),
        ("unknown", "output_price: 1", None),
        ("unknown", "input_price: 1, output_price: 2", Price(input=1.0, output=2.0)),
    ],
)
def test_a_partly_configured_price_is_completed_from_the_table(
    tmp_path: Path, model: str, given: str, expected: Price | None
) -> None:
    found = settings(tmp_path, f"model: {{default: {model}, {given}}}\n")
    assert chosen(found).choice.price == expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("anthropic/claude-sonnet-5.5", ("image", "file")),
        ("openai/gpt-5.6-luna", ("image", "file")),
        ("openai/gpt-4o-audio-preview", ("audio",)),
        ("openai/gpt-oss-120b", ()),
        ("a/b", None),
    ],
)
def test_the_table_knows_which_attachments_a_model_accepts(
    tmp_path: Path, model: str, expected: tuple[str, ...] | None
) -> None:
    found = chosen(settings(tmp_path, f"model: {model}\n"))
    assert found.choice.attachments == expected
    assert found.sources.get("attachments") == (None if expected is None else "the table of models")


def test_the_embedded_model_accepts_no_attachments(tmp_path: Path) -> None:
    found = chosen(settings(tmp_path, "model: {provider: local, default: x.gguf}\n"))
    assert found.choice.attachments == ()


def test_a_list_says_which_attachments_a_model_accepts(tmp_path: Path) -> None:
    found = settings(tmp_path, "model: a/b\n")
    place = models_of(found).main()
    assert place
    models_of(found).cache.save(place, (ListedModel(id="a/b", attachments=("image",)),))
    assert chosen(found).choice.attachments == ("image",)
    assert chosen(found).sources["attachments"] == "the list of OpenRouter"


@pytest.mark.parametrize(
    ("given", "expected"),
    [("[]", ()), ("image", ("image",)), ("[file, image]", ("image", "file"))],
)
def test_the_settings_say_which_attachments_a_model_accepts(
    tmp_path: Path, given: str, expected: tuple[str, ...]
) -> None:
    config = f"model:\n  default: openai/gpt-4o-audio-preview\n  attachments: {given}\n"
    found = chosen(settings(tmp_path, config))
    assert found.choice.attachments == expected
    assert found.sources["attachments"] == f"{tmp_path / 'config.yaml'} line 3"


def test_an_unknown_kind_of_attachment_is_explained(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'picture' is not one of image, audio"):
        chosen(settings(tmp_path, "model: {default: a/b, attachments: [picture]}\n"))
