"""The choice of the database by the settings."""

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.app.stores import home_store
from hermes.settings import Settings, load
from hermes.settings.sections import StoreSettings
from hermes.state.paths import STORE_NAME, Home
from hermes.testing.rows import names, put
from hermes.testing.stores import store_url, stores_on_postgres
from hermes.types.errors import ConfigError


async def test_without_an_address_the_store_is_a_file_in_the_home(tmp_path: Path) -> None:
    async with home_store(load(tmp_path, {})) as store:
        await store.run(put, "a")
    assert (tmp_path / STORE_NAME).exists()


async def test_the_environment_chooses_postgres(tmp_path: Path) -> None:
    with stores_on_postgres():
        settings = load(tmp_path, {"HERMES_STORE_URL": store_url(tmp_path)})
        async with home_store(settings) as store:
            await store.run(put, "a")
        async with home_store(settings, "gateway") as store:
            assert await store.read(names) == ["a"]
            assert store.owner
    assert not (tmp_path / STORE_NAME).exists()


async def test_the_error_for_an_unknown_scheme_lists_the_known_schemes(tmp_path: Path) -> None:
    settings = load(tmp_path, {"HERMES_STORE_URL": "mysql://user:secret-word@host/db"})
    with pytest.raises(ConfigError, match=r"'mysql'.*postgresql://") as raised:
        async with home_store(settings):
            pass
    assert "secret-word" not in str(raised.value)


async def test_the_error_for_a_missing_extra_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "hermes.state.postgres.store", raising=False)
    monkeypatch.setitem(sys.modules, "hermes.state.postgres.store", None)
    settings = Settings(
        home=Home(root=tmp_path), store=StoreSettings(url="postgresql://host/hermes")
    )
    with pytest.raises(ConfigError, match=r"pip install 'hermes-gateway\[postgres\]'"):
        async with home_store(settings):
            pass


def test_the_address_is_a_secret(tmp_path: Path) -> None:
    url = "postgresql://hermes:pa%20ssword1@host/db"
    settings = load(tmp_path, {"HERMES_STORE_URL": url})
    assert {url, "pa%20ssword1", "pa ssword1"} <= settings.secrets()
    assert "ssword" not in repr(settings.store)
    assert "ssword" not in repr(replace(settings.store, direct_url=url))
