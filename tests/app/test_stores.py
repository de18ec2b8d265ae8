"""The settings choose the database and the bus."""

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.app.stores import home_store
from hermes.settings import Settings, load
from hermes.settings.sections import BusSettings, StoreSettings
from hermes.state.nats.bus import NatsBus
from hermes.state.paths import STORE_NAME, Home
from hermes.state.postgres.bus import PostgresBus
from hermes.testing.nats import running_nats
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


async def test_the_address_of_nats_chooses_the_bus(tmp_path: Path) -> None:
    with stores_on_postgres(), running_nats() as server:
        environ = {"HERMES_STORE_URL": store_url(tmp_path), "HERMES_BUS_URL": server.url()}
        settings = load(tmp_path, environ)
        async with home_store(settings, "gateway") as store:
            assert isinstance(store.bus, NatsBus)
        async with home_store(replace(settings, bus=BusSettings()), "gateway") as store:
            assert isinstance(store.bus, PostgresBus)


async def test_a_bus_for_sqlite_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("bus:\n  url: nats://hermes:secret-word@host\n")
    with pytest.raises(ConfigError, match=r"config\.yaml.*one machine and need no bus") as raised:
        async with home_store(load(tmp_path, {})):
            pass
    assert "secret-word" not in str(raised.value)
    assert not (tmp_path / STORE_NAME).exists()


async def test_a_wrong_address_of_the_bus_is_refused(tmp_path: Path) -> None:
    environ = {"HERMES_STORE_URL": "postgresql://host/hermes", "HERMES_BUS_URL": "redis://a:b@host"}
    with pytest.raises(ConfigError, match=r"bus\.url begins with 'redis'.*nats://"):
        async with home_store(load(tmp_path, environ), "gateway"):
            pass


async def test_the_missing_extra_of_the_bus_is_named_with_the_way_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "hermes.state.nats.bus", None)
    environ = {"HERMES_STORE_URL": "postgresql://host/hermes", "HERMES_BUS_URL": "nats://host"}
    with pytest.raises(ConfigError, match=r"bus\.url.*pip install 'hermes-gateway\[nats\]'"):
        async with home_store(load(tmp_path, environ), "gateway"):
            pass


@pytest.mark.parametrize(
    ("url", "secrets"),
    [
        ("nats://hermes:pa%20ssword1@host", {"pa%20ssword1", "pa ssword1"}),
        ("nats://a-secret-token@host:4222", {"a-secret-token"}),
        ("nats://token-number-1@a,nats://u:word-number-2@b", {"token-number-1", "word-number-2"}),
    ],
)
def test_the_address_of_the_bus_is_a_secret(tmp_path: Path, url: str, secrets: set[str]) -> None:
    settings = load(tmp_path, {"HERMES_BUS_URL": url})
    assert {url, *secrets} <= settings.secrets()
    assert "host" not in settings.secrets()
    assert not any(secret in repr(settings.bus) for secret in secrets)


def test_the_address_is_a_secret(tmp_path: Path) -> None:
    url = "postgresql://hermes:pa%20ssword1@host/db"
    settings = load(tmp_path, {"HERMES_STORE_URL": url})
    assert {url, "pa%20ssword1", "pa ssword1"} <= settings.secrets()
    assert "ssword" not in repr(settings.store)
    assert "ssword" not in repr(replace(settings.store, direct_url=url))
