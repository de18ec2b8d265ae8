"""Lists of models are cached on disk, without keys and passwords."""

import stat
from pathlib import Path

from msgspec.structs import replace

from hermes.core.models.model_cache import CachedList, ListedModel, ModelCache
from hermes.types.profile import ModelChoice, Price

PLACE = ModelChoice(provider="openrouter", model="a/b", base_url="http://x/v1", api_key="secret")
MODEL = ListedModel(id="a/b", context_length=1000, price=Price(input=1.0, output=2.0))


def test_only_the_owner_can_read_a_list_and_it_does_not_contain_the_key(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "models"
    ModelCache(folder, clock=lambda: 7.0).save(PLACE, (MODEL,))
    expected = CachedList(base_url="http://x/v1", asked_at=7.0, models=(MODEL,))
    assert ModelCache(folder).last(PLACE) == expected
    file = folder / "openrouter.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "secret" not in file.read_text("utf-8")


def test_a_list_is_stored_without_the_password_in_its_address(tmp_path: Path) -> None:
    endpoint = replace(PLACE, base_url="http://me:opensesame@x/v1")
    ModelCache(tmp_path).save(endpoint, (MODEL,))
    assert ModelCache(tmp_path).find(endpoint) == MODEL
    assert "opensesame" not in (tmp_path / "openrouter.json").read_text("utf-8")


def test_without_a_cached_list_nothing_is_returned(tmp_path: Path) -> None:
    cache = ModelCache(tmp_path)
    assert cache.last(PLACE) is None
    assert cache.find(PLACE) is None
    (tmp_path / "openrouter.json").write_text('{"models": 3}', encoding="utf-8")
    assert cache.last(PLACE) is None


def test_a_list_from_another_address_is_not_used(tmp_path: Path) -> None:
    cache = ModelCache(tmp_path)
    cache.save(PLACE, (MODEL,))
    assert cache.last(replace(PLACE, base_url="http://y/v1")) is None


def test_a_list_is_current_for_a_while(tmp_path: Path) -> None:
    now = 100.0
    cache = ModelCache(tmp_path, clock=lambda: now)
    cache.save(PLACE, (MODEL,))
    now = 109.0
    assert cache.current(PLACE, 10.0) is not None
    now = 110.0
    assert cache.current(PLACE, 10.0) is None
    now = 50.0
    assert cache.current(PLACE, 10.0) is None, "the clock was set back: it could be any age"


def test_a_model_is_found_by_its_name_and_a_new_list_is_noticed(tmp_path: Path) -> None:
    cache = ModelCache(tmp_path)
    cache.save(PLACE, (ListedModel(id="c/d"),))
    assert cache.find(PLACE) is None
    cache.save(PLACE, (ListedModel(id="c/d"), MODEL))
    assert cache.find(PLACE) == MODEL
