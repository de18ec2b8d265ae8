"""The command `hermes model` shows, lists, chooses and tests models."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hermes.core.models.catalog import Catalog
from hermes.core.models.model_cache import ListedModel
from hermes.entry.cli.model import model
from hermes.settings import Settings, load, schema
from hermes.testing.configured import models_of, offers_of
from hermes.types.errors import AuthFailed, Disconnected, HermesError
from hermes.types.events import TextDelta, UsageReported
from hermes.types.messages import AssistantMessage
from hermes.types.offers import ModelOffers, ModelResolver
from hermes.types.profile import ModelChoice, Price
from hermes.types.protocols import Emit
from tests.entry.cli.conftest import Run

KEY = "sk-0123456789abcdef"
DEAR = ListedModel(id="dear", context_length=1000, price=Price(input=1.0, output=2.0, cached=0.5))


class FakeRuntime:
    """A fake of the application. Its calls to providers succeed, or raise `error`."""

    def __init__(self, error: HermesError | None = None, text: str = "ready") -> None:
        self.error, self.text = error, text
        self.refreshed: list[tuple[str, bool]] = []
        self.asked: list[ModelChoice] = []

    def models(self, settings: Settings) -> ModelResolver:
        return models_of(settings)

    def offers(self, settings: Settings) -> ModelOffers:
        return offers_of(settings)

    async def refresh_models(self, settings: Settings, place: ModelChoice, *, fresh: bool) -> None:
        self.refreshed.append((place.provider, fresh))
        if self.error:
            raise self.error
        models_of(settings).cache.save(place, (DEAR, ListedModel(id="plain")))

    async def call_model(
        self, _settings: Settings, choice: ModelChoice, text: str, emit: Emit
    ) -> AssistantMessage:
        self.asked.append(choice)
        if self.error:
            raise self.error
        emit(TextDelta(text=self.text))
        emit(UsageReported(prompt_tokens=12, completion_tokens=3, cost=0.00042))
        assert text == "Reply with the word ready"
        return AssistantMessage(text=self.text)


def hermes(home: Path, *args: str, runtime: FakeRuntime | None = None, **environ: str) -> Result:
    names = {name for field in schema().fields.values() for name in field.aliases.env}
    names |= {name for one in Catalog.load().providers for name in (*one.keys, *one.base_url_env)}
    clean: dict[str, str | None] = dict.fromkeys(names)
    runner = CliRunner(env={**clean, "HERMES_HOME": str(home), **environ})
    return runner.invoke(model, args, obj=runtime or FakeRuntime())


def config(home: Path) -> str:
    return (home / "config.yaml").read_text("utf-8")


def test_without_a_model_the_output_says_how_to_get_one(tmp_path: Path) -> None:
    shown = hermes(tmp_path)
    assert shown.exit_code == 1
    assert "No model is configured" in shown.stderr


def test_show_prints_the_model_and_its_source_but_not_the_key(tmp_path: Path) -> None:
    shown = hermes(tmp_path, OPENAI_API_KEY=KEY)
    assert shown.exit_code == 0
    assert shown.stdout.splitlines() == [
        "model      gpt-5.6-terra  (the default of OpenAI)",
        "provider   openai  (the first key found, environment OPENAI_API_KEY)",
        "address    https://api.openai.com/v1  (usual for OpenAI)",
        "key        set  (environment OPENAI_API_KEY)",
        "wire       responses  (usual for OpenAI)",
        "window     1,050,000 tokens  (the table of models)",
        "price      $2 read, $12 written, $0.2 cached, a million tokens  (the table of models)",
        "summaries  the same model  (auxiliary.* is empty)",
    ]


def test_show_prints_the_other_models_and_unknown_facts(tmp_path: Path) -> None:
    text = "model: {default: m, base_url: 'http://x/v1', max_tokens: 5000, fallbacks: [ollama/l]}\n"
    (tmp_path / "config.yaml").write_text(f"{text}auxiliary: {{model: a}}\n", encoding="utf-8")
    lines = hermes(tmp_path).stdout.splitlines()
    assert "key        none" in lines
    assumed = "assumed; model.context_length sets another"
    assert f"window     128,000 tokens  ({assumed})" in lines
    assert f"answers    up to 5,000 tokens  ({tmp_path / 'config.yaml'} line 1)" in lines
    assert f"summaries  a of custom  ({tmp_path / 'config.yaml'} line 2)" in lines
    assert lines[-1] == "fallback   l of ollama  (model.fallbacks)"


def test_show_prints_json(tmp_path: Path) -> None:
    shown = hermes(tmp_path, "--json", OPENAI_API_KEY=KEY, HERMES_AUXILIARY_PROVIDER="openai")
    found = json.loads(shown.stdout)
    assert found["model"] == "gpt-5.6-terra"
    assert found["price"]["cached"] == 0.2
    assert found["why"]["provider"].startswith("the first key found")
    assert found["auxiliary"]["model"] == "gpt-5.6-luna"
    assert found["fallbacks"] == []
    assert KEY not in shown.output


def test_the_error_for_a_wrong_configuration_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("model: {provider: gorq}\n", encoding="utf-8")
    shown = hermes(tmp_path)
    assert shown.exit_code == 2
    assert shown.stderr == "provider 'gorq' is not supported: did you mean 'groq'?\n"


@pytest.mark.parametrize("args", [("gpt-x",), ("use", "gpt-x")])
def test_a_plain_name_changes_the_model(tmp_path: Path, args: tuple[str, ...]) -> None:
    done = hermes(tmp_path, *args, OPENAI_API_KEY=KEY)
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "model.default = gpt-x",
        "gpt-x of openai is selected; a running gateway uses it after a restart",
    ]
    assert config(tmp_path) == "model:\n  default: gpt-x\n"


def test_a_prefix_also_changes_the_provider(tmp_path: Path) -> None:
    done = hermes(tmp_path, "groq/a/b", OPENAI_API_KEY=KEY)
    assert done.exit_code == 0
    assert done.stderr == f"note: Groq needs a key: set GROQ_API_KEY in {tmp_path / '.env'}\n"
    assert load(tmp_path, {}).model.provider == "groq"
    assert load(tmp_path, {}).model.default == "a/b"


def test_a_provider_may_be_given_in_addition_to_the_name(tmp_path: Path) -> None:
    use = ("use", "--provider", "claude", "claude-x")
    assert hermes(tmp_path, *use, OPENROUTER_API_KEY=KEY).exit_code == 0
    found = models_of(load(tmp_path, {"OPENROUTER_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY})).main()
    assert found
    assert (found.provider, found.model) == ("anthropic", "claude-x")


def test_the_address_is_not_kept_for_another_provider(tmp_path: Path) -> None:
    text = "model:\n  default: m\n  base_url: http://x/v1\n"
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    done = hermes(tmp_path, "groq/a/b", GROQ_API_KEY=KEY)
    assert "model.base_url is removed" in done.stdout
    found = models_of(load(tmp_path, {"GROQ_API_KEY": KEY})).main()
    assert found
    assert found.base_url == "https://api.groq.com/openai/v1"


def test_the_address_of_a_custom_endpoint_is_kept_so_that_it_can_be_chosen_again(
    tmp_path: Path,
) -> None:
    text = "model:\n  default: m\n  base_url: http://x/v1\n"
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    keys = {"GROQ_API_KEY": KEY, "HERMES_CUSTOM_API_KEY": "of-x"}
    away = hermes(tmp_path, "groq/a/b", runtime=None, **keys)
    assert "`hermes model custom/m` switches back" in away.stdout
    elsewhere = models_of(load(tmp_path, keys)).main()
    assert elsewhere
    assert (elsewhere.provider, elsewhere.api_key) == ("groq", KEY)
    assert models_of(load(tmp_path, keys)).named("custom/m").base_url == "http://x/v1"
    back = hermes(tmp_path, "custom/m", runtime=None, **keys)
    assert back.exit_code == 0
    found = models_of(load(tmp_path, keys)).main()
    assert found
    assert (found.provider, found.model, found.base_url) == ("custom", "m", "http://x/v1")
    assert found.api_key == "of-x"


def test_an_endpoint_of_ones_own_replaces_the_demo_model(tmp_path: Path) -> None:
    text = "model:\n  provider: local\n  base_url: http://x/v1\n"
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    chosen = hermes(tmp_path, "llama3", runtime=None)
    assert "llama3 of custom is selected" in chosen.stdout
    assert chosen.exit_code == 0
    model = load(tmp_path, {}).model
    assert (model.provider, model.default, model.base_url) == ("custom", "llama3", "http://x/v1")


def test_the_address_of_a_known_provider_is_not_kept_as_a_custom_endpoint(
    tmp_path: Path,
) -> None:
    text = "model:\n  provider: anthropic\n  default: m\n  base_url: http://proxy\n"
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    done = hermes(tmp_path, "groq/a/b", GROQ_API_KEY=KEY, ANTHROPIC_API_KEY=KEY)
    assert done.exit_code == 0
    assert "custom_base_url" not in config(tmp_path)


def test_a_key_in_the_file_is_not_used_for_another_provider(tmp_path: Path) -> None:
    text = "model: {default: m, base_url: 'http://x/v1', api_key: of-x}\n"
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    refused = hermes(tmp_path, "groq/a/b")
    assert refused.exit_code == 2
    assert "has a model.api_key, which would be sent to groq" in refused.stderr
    assert config(tmp_path) == text


def test_the_command_use_says_that_the_environment_overrides_the_change(tmp_path: Path) -> None:
    done = hermes(tmp_path, "gpt-x", OPENAI_API_KEY=KEY, HERMES_MODEL="gpt-y")
    assert done.exit_code == 0
    assert done.stderr == "note: environment HERMES_MODEL overrides it\n"


def test_a_backup_contains_the_comments_that_were_lost(tmp_path: Path) -> None:
    shared = "_config_version: 33\nx: &x {default: a} # mine\nmodel: *x\n"
    (tmp_path / "config.yaml").write_text(shared, encoding="utf-8")
    done = hermes(tmp_path, "groq/a/b", GROQ_API_KEY=KEY)
    assert "the original file is" in done.stdout


@pytest.mark.parametrize(
    ("word", "meant"), [("tset", "test"), ("tests", "test"), ("lst", "list"), ("shwo", "show")]
)
def test_a_misspelled_command_is_not_taken_as_a_model(
    tmp_path: Path, word: str, meant: str
) -> None:
    refused = hermes(tmp_path, word, OPENAI_API_KEY=KEY)
    assert refused.exit_code == 2
    assert f"did you mean `hermes model {meant}`?" in " ".join(refused.stderr.split())
    assert not (tmp_path / "config.yaml").exists()
    assert hermes(tmp_path, word, "--force", OPENAI_API_KEY=KEY).exit_code == 0
    assert word in config(tmp_path)


def test_a_name_that_is_not_in_the_list_needs_the_force_option(tmp_path: Path) -> None:
    place = models_of(load(tmp_path, {"OPENAI_API_KEY": KEY})).main()
    assert place
    models_of(load(tmp_path, {})).cache.save(place, (ListedModel(id="gpt-5.6-luna"),))
    refused = hermes(tmp_path, "gtp-5.6-luna", OPENAI_API_KEY=KEY)
    assert refused.exit_code == 2
    expected = "openai does not list 'gtp-5.6-luna': did you mean 'gpt-5.6-luna'?"
    assert refused.stderr == f"{expected} (to use this name anyway, add --force)\n"
    assert not (tmp_path / "config.yaml").exists()
    assert hermes(tmp_path, "gtp-5.6-luna", "--force", OPENAI_API_KEY=KEY).exit_code == 0
    assert "gtp-5.6-luna" in config(tmp_path)


def test_all_providers_are_listed_without_a_network_request(tmp_path: Path) -> None:
    runtime = FakeRuntime()
    shown = hermes(tmp_path, "list", runtime=runtime, GROQ_API_KEY=KEY)
    lines = shown.stdout.splitlines()
    spaced = [" ".join(line.split()) for line in lines]
    assert "groq ready Groq" in spaced
    assert "openai no key (set OPENAI_API_KEY) OpenAI" in spaced
    assert "ollama needs no key Ollama on this machine" in spaced
    assert lines[-2].startswith("custom         no address (set model.base_url)")
    assert lines[-1] == "local/smollm2-135m-instruct  2,048 tokens"
    assert runtime.refreshed == []


def test_the_models_of_a_provider_are_listed(tmp_path: Path) -> None:
    runtime = FakeRuntime()
    shown = hermes(tmp_path, "list", "groq", runtime=runtime, GROQ_API_KEY=KEY)
    assert shown.stdout.splitlines() == [
        "groq/dear  1,000 tokens  $1 read, $2 written, $0.5 cached, a million tokens",
        "groq/plain  131,072 tokens",
    ]
    assert runtime.refreshed == [("groq", False)]
    known = hermes(tmp_path, "list", GROQ_API_KEY=KEY)
    assert known.stdout.splitlines()[-2] == "groq/plain  131,072 tokens"


def test_the_list_shows_the_context_length_that_the_chosen_model_has(
    tmp_path: Path,
) -> None:
    place = models_of(load(tmp_path, {"OPENAI_API_KEY": KEY})).main()
    assert place
    listed = (ListedModel(id="gpt-5.6-luna"), ListedModel(id="house"), ListedModel(id="big"))
    models_of(load(tmp_path, {})).cache.save(place, listed)
    (tmp_path / "config.yaml").write_text("model: {default: big, context_length: 9000}\n")
    shown = json.loads(hermes(tmp_path, "list", "--json", OPENAI_API_KEY=KEY).stdout)
    found = {one["name"]: one["models"] for one in shown["providers"]}["openai"]
    sizes = {one["id"]: one["context_length"] for one in found}
    assert sizes["big"] == 9000
    chosen = hermes(tmp_path, "--json", OPENAI_API_KEY=KEY)
    assert json.loads(chosen.stdout)["context_length"] == 9000
    models = models_of(load(tmp_path, {"OPENAI_API_KEY": KEY}))
    assert models.named("openai/house").window == sizes["house"] == 128_000
    assert models.named("openai/gpt-5.6-luna").window == sizes["gpt-5.6-luna"] > 128_000


def test_refresh_requests_the_lists_of_all_configured_providers(tmp_path: Path) -> None:
    runtime = FakeRuntime()
    environ = {"GROQ_API_KEY": KEY, "OPENAI_API_KEY": KEY}
    hermes(tmp_path, "list", "--refresh", runtime=runtime, **environ)
    assert runtime.refreshed == [("openai", True), ("groq", True)]


def test_the_old_list_is_shown_if_it_can_not_be_refreshed(tmp_path: Path) -> None:
    assert hermes(tmp_path, "list", "groq", GROQ_API_KEY=KEY).exit_code == 0
    away = FakeRuntime(Disconnected("groq is out of reach"))
    shown = hermes(tmp_path, "list", "groq", "--refresh", runtime=away, GROQ_API_KEY=KEY)
    assert shown.exit_code == 0
    assert shown.stderr == "note: groq is out of reach\n"
    assert "groq/plain" in shown.stdout


def test_a_provider_without_a_list_is_reported(tmp_path: Path) -> None:
    away = FakeRuntime(Disconnected("groq is out of reach"))
    shown = hermes(tmp_path, "list", "groq", runtime=away, GROQ_API_KEY=KEY)
    assert shown.exit_code == 2
    assert shown.stderr.splitlines() == [
        "note: groq is out of reach",
        "Groq: no list of models is available",
    ]
    assert hermes(tmp_path, "list", "gorq").exit_code == 2


def test_only_local_models_that_are_listed_can_be_used(tmp_path: Path) -> None:
    assert hermes(tmp_path, "use", "local").exit_code == 0
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "own.gguf").touch()
    shown = hermes(tmp_path, "list", "local")
    names = [line.split()[0] for line in shown.stdout.splitlines()]
    assert names == ["local/smollm2-135m-instruct", "local/own.gguf"]
    refused = hermes(tmp_path, "use", "nonsense")
    assert refused.exit_code == 2
    assert "here are smollm2-135m-instruct, own.gguf" in refused.stderr
    assert hermes(tmp_path, "use", "own.gguf").exit_code == 0
    assert load(tmp_path, {}).model.default == "own.gguf"


def test_a_key_replaces_the_demo_model_and_a_notice_says_so(tmp_path: Path) -> None:
    used = hermes(tmp_path, "use", "local", OPENAI_API_KEY=KEY)
    assert "gpt-5.6-terra of openai is selected" in used.stdout
    assert "environment OPENAI_API_KEY, instead of the demo model of" in used.stderr
    assert "instead of the demo model" in hermes(tmp_path, OPENAI_API_KEY=KEY).stdout
    hermes(tmp_path, "use", "gpt-x", OPENAI_API_KEY=KEY)
    assert load(tmp_path, {}).model.provider == "openai"


def test_the_error_for_a_model_without_a_provider_says_what_is_missing(tmp_path: Path) -> None:
    assert "hermes model use local" in hermes(tmp_path, "use", "gpt-x").stderr


def test_lists_can_be_printed_as_json(tmp_path: Path) -> None:
    shown = hermes(tmp_path, "list", "groq", "--json", GROQ_API_KEY=KEY)
    (provider,) = json.loads(shown.stdout)["providers"]
    assert provider["name"] == "groq"
    assert provider["ready"] is True
    assert [one["id"] for one in provider["models"]] == ["dear", "plain"]
    assert KEY not in shown.output


def test_a_test_shows_answer_times_tokens_and_cost(tmp_path: Path) -> None:
    shown = hermes(tmp_path, "test", OPENAI_API_KEY=KEY)
    first, second, third = shown.stdout.splitlines()
    assert first == "gpt-5.6-terra of openai says: ready"
    assert second.startswith("first word after 0.")
    assert third == "12 tokens read, 3 written, $0.000420"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("gpt-x", ("openai", "gpt-x")), ("groq/a/b", ("groq", "a/b"))],
)
def test_another_model_may_be_tested(tmp_path: Path, name: str, expected: tuple[str, str]) -> None:
    runtime = FakeRuntime()
    environ = {"OPENAI_API_KEY": KEY, "GROQ_API_KEY": KEY}
    assert hermes(tmp_path, "test", name, runtime=runtime, **environ).exit_code == 0
    (choice,) = runtime.asked
    assert (choice.provider, choice.model) == expected
    assert not (tmp_path / "config.yaml").exists()


def test_a_test_can_be_printed_as_json(tmp_path: Path) -> None:
    found = json.loads(hermes(tmp_path, "test", "--json", OPENAI_API_KEY=KEY).stdout)
    assert found["answer"] == "ready"
    assert found["cost"] == 0.00042
    assert found["total_seconds"] >= found["first_token_seconds"]


def test_a_failed_test_gives_one_sentence_and_exit_code_1(tmp_path: Path) -> None:
    wrong = FakeRuntime(AuthFailed("openai refused the API key"))
    failed = hermes(tmp_path, "test", runtime=wrong, OPENAI_API_KEY=KEY)
    assert (failed.exit_code, failed.stderr) == (1, "openai refused the API key\n")
    failed = hermes(tmp_path, "test", "--json", runtime=wrong, OPENAI_API_KEY=KEY)
    assert json.loads(failed.stdout) == {"error": "openai refused the API key"}
    silent = hermes(tmp_path, "test", runtime=FakeRuntime(text=" "), OPENAI_API_KEY=KEY)
    assert silent.exit_code == 1
    assert "gave an empty answer" in silent.stderr
    assert "No model is configured" in hermes(tmp_path, "test").stderr


def test_help_contains_examples(tmp_path: Path) -> None:
    shown = hermes(tmp_path, "--help")
    assert "hermes model groq/openai/gpt-oss-120b" in shown.stdout
    assert "Use another model." in shown.stdout


def test_model_commands_work_with_a_real_server(hermes: Run, tmp_path: Path) -> None:
    listed = hermes("model", "list", "custom")
    assert listed.stdout == "custom/fake  128,000 tokens (assumed)\n"
    assert (tmp_path / "home" / "cache" / "models" / "custom.json").exists()
    tested = hermes("model", "test")
    assert "fake of custom says:" in tested.stdout
    assert "tokens read" in tested.stdout
    used = hermes("model", "other", "--force")
    assert used.returncode == 0
    assert used.stderr == "note: environment HERMES_MODEL overrides it\n"
