"""The checks of the configured models."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import aiohttp
import pytest

from hermes.core.models import health
from hermes.core.models.download import SMOLLM2
from hermes.core.models.model_discovery import ModelDiscovery
from hermes.settings import load
from hermes.testing.configured import models_of
from hermes.testing.sites import answer, serving
from hermes.types.checks import Check, CheckJob

KEY = "the-key-of-the-endpoint"


async def jobs_of(home: Path, environ: Mapping[str, str]) -> list[CheckJob]:
    models = models_of(load(home, environ))
    async with aiohttp.ClientSession() as session:
        return [*health.model_jobs(models, ModelDiscovery(session, models.wires, models.cache))]


async def checked(home: Path, environ: Mapping[str, str]) -> list[Check]:
    models = models_of(load(home, environ))
    async with aiohttp.ClientSession() as session:
        jobs = health.model_jobs(models, ModelDiscovery(session, models.wires, models.cache))
        return [check for job in jobs for check in await job.run()]


async def checked_at(home: Path, reply: bytes, **environ: str) -> Check:
    """Checks a model whose endpoint answers the request for its list of models with `reply`."""
    async with serving({"/v1/models": reply}) as site:
        url = f"http://127.0.0.1:{site.port}/v1"
        given = {"HERMES_CUSTOM_BASE_URL": url, "HERMES_MODEL": "small", **environ}
        (found,) = await checked(home, given)
    return found


def listed(*names: str) -> bytes:
    body = json.dumps({"data": [{"id": name} for name in names]})
    return answer(body, media_type="application/json")


async def test_without_a_model_the_check_says_how_to_choose_one(tmp_path: Path) -> None:
    (found,) = await checked(tmp_path, {})
    assert (found.name, found.level) == ("model", "error")
    assert "hermes model" in found.hint


async def test_a_missing_key_is_an_error_that_names_the_variable(tmp_path: Path) -> None:
    (found,) = await checked(tmp_path, {"HERMES_INFERENCE_PROVIDER": "openai"})
    assert (found.level, "OPENAI_API_KEY" in found.text) == ("error", True)


async def test_an_endpoint_that_lists_the_model_is_ok(tmp_path: Path) -> None:
    found = await checked_at(tmp_path, listed("large", "small"))
    assert (found.name, found.level) == ("model", "ok")
    assert found.text.startswith("small (custom, http://127.0.0.1:")
    assert "answers" in found.text


async def test_an_unlisted_model_is_a_warning_that_suggests_another(tmp_path: Path) -> None:
    found = await checked_at(tmp_path, listed("smoll"))
    assert (found.level, "did you mean 'smoll'?" in found.text) == ("warning", True)


async def test_a_refused_key_is_an_error_without_the_key(tmp_path: Path) -> None:
    found = await checked_at(tmp_path, answer(KEY, status=401), HERMES_CUSTOM_API_KEY=KEY)
    assert found.level == "error"
    assert "API key" in found.text
    assert KEY not in found.text + found.hint


async def test_an_endpoint_without_a_list_is_a_warning(tmp_path: Path) -> None:
    found = await checked_at(tmp_path, answer("no such page", status=404))
    assert (found.level, "did not return a list of models" in found.text) == ("warning", True)
    assert "hermes model test" in found.hint


async def test_an_endpoint_that_can_not_be_reached_is_an_error(tmp_path: Path) -> None:
    environ = {"HERMES_CUSTOM_BASE_URL": "http://127.0.0.1:9/v1", "HERMES_MODEL": "small"}
    (found,) = await checked(tmp_path, environ)
    assert (found.level, "can't be reached" in found.text) == ("error", True)


async def test_an_endpoint_has_three_seconds_to_answer(tmp_path: Path) -> None:
    environ = {"HERMES_CUSTOM_BASE_URL": "http://127.0.0.1:9/v1", "HERMES_MODEL": "small"}
    (job,) = await jobs_of(tmp_path, environ)
    assert job.seconds == 3.0
    assert job.late == "small (custom, http://127.0.0.1:9/v1) did not answer within 3 s"


async def test_the_auxiliary_model_and_each_fallback_have_a_check(tmp_path: Path) -> None:
    text = "model: {fallbacks: [openai/gpt-5, nonsense/x]}\nauxiliary: {provider: mistral}\n"
    (tmp_path / "config.yaml").write_text(text)
    environ = {"OPENAI_API_KEY": "k", "MISTRAL_API_KEY": "k"}
    jobs = await jobs_of(tmp_path, environ)
    assert [job.name for job in jobs] == ["model", "auxiliary", "fallback"]
    (found,) = await jobs[-1].run()
    assert (found.level, "nonsense" in found.text) == ("error", True)


async def test_a_local_model_needs_its_file(tmp_path: Path) -> None:
    environ = {"HERMES_INFERENCE_PROVIDER": "local", "HERMES_MODEL": "mine.gguf"}
    (found,) = await checked(tmp_path, environ)
    assert (found.level, "mine.gguf" in found.text) == ("error", True)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine.gguf").touch()
    (found,) = await checked(tmp_path, environ)
    assert (found.level, found.text) == ("ok", "mine.gguf, which runs on this machine")


@pytest.mark.parametrize("here", [False, True])
async def test_the_demo_model_is_ok_before_and_after_its_download(
    tmp_path: Path, here: bool
) -> None:
    if here:
        path = SMOLLM2.path(tmp_path / "models")
        path.parent.mkdir(parents=True)
        path.touch()
        os.truncate(path, SMOLLM2.size)
    (found,) = await checked(tmp_path, {"HERMES_INFERENCE_PROVIDER": "local"})
    assert (found.level, "not downloaded yet" in found.text) == ("ok", not here)
