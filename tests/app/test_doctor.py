"""The report of `hermes doctor`: it is complete, changes nothing and shows no secret."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
import pytest

from hermes.app.doctor import diagnose, run_jobs
from hermes.state.paths import STORE_NAME
from hermes.state.sqlite.migration import prepare
from hermes.testing.sites import answer, serving
from hermes.testing.stores import store_url, stores_on_postgres
from hermes.testing.telegram import BotApiServer
from hermes.types.checks import Check, CheckJob, known_checks
from hermes.types.errors import StoreUnavailable

TOKEN = "100:secret-token"
KEY = "a-key-that-nobody-may-see"
PARTS = ["versions", "disk", "permissions", "plugins", "settings", "store"]


def named(checks: Sequence[Check], name: str) -> Check:
    """Returns the only check with this name."""
    (found,) = [one for one in checks if one.name == name]
    return found


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Returns the mode and the content of each file."""
    return {
        str(path): (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in [folder, *folder.rglob("*")]
    }


async def diagnosed_with_servers(home: Path, environ: Mapping[str, str]) -> list[Check]:
    """Runs the checks with a model and a bot that answer."""
    models = answer(json.dumps({"data": [{"id": "small"}]}), media_type="application/json")
    async with serving({"/v1/models": models}) as site, BotApiServer().running() as server:
        server.add_bot(TOKEN, "our_bot")
        given = {
            "HERMES_CUSTOM_BASE_URL": f"http://127.0.0.1:{site.port}/v1",
            "HERMES_CUSTOM_API_KEY": KEY,
            "HERMES_MODEL": "small",
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_BASE_URL": server.url,
            **environ,
        }
        return await diagnose(home, given)


async def test_every_part_has_a_line(tmp_path: Path) -> None:
    found = await diagnosed_with_servers(tmp_path, {})
    names = list(dict.fromkeys(one.name for one in found))
    assert names == [*PARTS, "commands", "model", "gateway", "telegram"]
    assert [one for one in found if one.level == "error"] == []
    assert named(found, "telegram").text == "@our_bot"
    assert named(found, "gateway").level == "warning"
    assert "SQLite 3." in named(found, "versions").text


async def test_a_home_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("terminal: {backend: local}\n")
    (tmp_path / ".env").write_text("A=1\n")
    (tmp_path / ".env").chmod(0o644)
    prepare(tmp_path / STORE_NAME).close()
    tmp_path.chmod(0o755)
    before = contents(tmp_path)
    found = await diagnosed_with_servers(tmp_path, {})
    assert contents(tmp_path) == before
    assert [one.level for one in found if one.name == "permissions"] == ["warning", "warning"]


async def test_a_missing_home_is_not_created(tmp_path: Path) -> None:
    found = await diagnose(tmp_path / "home", {})
    assert not (tmp_path / "home").exists()
    assert {one.name for one in found if one.level == "error"} == {"model"}


async def test_no_line_contains_a_secret(tmp_path: Path) -> None:
    prepare(tmp_path / STORE_NAME).close()
    refusal = answer(json.dumps({"error": {"message": f"no {KEY}"}}), status=403)
    async with serving({"/v1/models": refusal}) as site, BotApiServer().running() as server:
        environ = {
            "HERMES_CUSTOM_BASE_URL": f"http://user:{KEY}@127.0.0.1:{site.port}/v1",
            "HERMES_CUSTOM_API_KEY": KEY,
            "HERMES_MODEL": "small",
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_BASE_URL": f"{server.url}/{KEY}",
            "API_SERVER_KEY": f"{KEY}-of-the-api",
            "HERMES_STORE_URL": f"postgresql://hermes:{KEY}@127.0.0.1:9/hermes",
        }
        found = await diagnose(tmp_path, environ)
    assert {one.name for one in found if one.level == "error"} >= {"store", "telegram"}
    text = "\n".join(one.text + one.hint for one in found)
    assert KEY not in text
    assert "secret-token" not in text


async def test_a_wrong_setting_does_not_hide_the_other_parts(tmp_path: Path) -> None:
    prepare(tmp_path / STORE_NAME).close()
    found = await diagnose(tmp_path, {"API_SERVER_PORT": "x", "HERMES_TIMEZONE": "Mars/North"})
    settings = [one for one in found if one.name == "settings"]
    assert [one.level for one in settings] == ["error", "error"]
    assert "API_SERVER_PORT" in settings[0].text
    assert str(tmp_path / "config.yaml") in settings[0].hint
    assert "no damage found" in named(found, "store").text
    assert named(found, "gateway").level == "ok"


async def test_ignored_settings_are_warnings(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("platforms: {carrier_pigeon: {enabled: true}}\n")
    found = named(await diagnose(tmp_path, {}), "settings")
    assert (found.level, "carrier_pigeon" in found.text) == ("warning", True)
    assert "hermes config check" in found.hint


async def test_approvals_that_are_off_are_a_warning(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("approvals: {mode: 'off'}\n")
    found = await diagnose(tmp_path, {})
    assert named(found, "approvals").level == "warning"
    assert "approvals.mode" in named(found, "approvals").hint


async def test_a_shared_folder_that_is_missing_is_an_error(tmp_path: Path) -> None:
    environ = {"HERMES_STORE_SHARED_FOLDER": str(tmp_path / "missing")}
    found = named(await diagnose(tmp_path / "home", environ), "settings")
    assert (found.level, "there is no folder" in found.text) == ("error", True)


async def test_wrong_settings_of_a_platform_do_not_hide_the_others(tmp_path: Path) -> None:
    found = await diagnosed_with_servers(tmp_path, {"MATRIX_ACCESS_TOKEN": "x"})
    assert named(found, "telegram").level == "ok"
    matrix = named(found, "matrix")
    assert (matrix.level, "MATRIX_HOMESERVER" in matrix.text) == ("error", True)


async def test_a_store_on_postgres_is_checked_instead_of_the_file(tmp_path: Path) -> None:
    with stores_on_postgres():
        found = await diagnose(tmp_path, {"HERMES_STORE_URL": store_url(tmp_path)})
    assert "PostgreSQL" in named(found, "store").text
    assert named(found, "store").level == "ok"


async def test_a_bus_has_a_line_if_it_is_configured(tmp_path: Path) -> None:
    environ = {
        "HERMES_STORE_URL": "postgresql://hermes@127.0.0.1:9/hermes",
        "HERMES_BUS_URL": f"nats://hermes:{KEY}@127.0.0.1:9",
    }
    found = named(await diagnose(tmp_path, environ), "bus")
    assert (found.level, "127.0.0.1:9 can't be used" in found.text) == ("error", True)
    assert KEY not in found.text
    wrong = named(await diagnose(tmp_path, {**environ, "HERMES_BUS_URL": "redis://host"}), "bus")
    assert (wrong.level, "nats://" in wrong.text) == ("error", True)


async def test_an_unknown_scheme_of_the_store_is_an_error(tmp_path: Path) -> None:
    found = await diagnose(tmp_path, {"HERMES_STORE_URL": f"mysql://user:{KEY}@host/db"})
    assert (named(found, "store").level, "mysql" in named(found, "store").text) == ("error", True)


async def test_a_broken_plugin_does_not_hide_the_other_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hopeless_plugin.py").write_text("raise ImportError('no such thing')\n")
    info = tmp_path / "hopeless_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hopeless_plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[hermes.plugins]\nhopeless = hopeless_plugin\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = await diagnose(tmp_path / "home", {})
    assert any(one.name == "plugins" and one.level == "error" for one in found)
    assert named(found, "store").level == "ok"


async def test_a_job_that_takes_too_long_is_an_error_and_delays_no_other() -> None:
    async def stuck() -> Sequence[Check]:
        await anyio.sleep_forever()
        raise AssertionError

    late = CheckJob(name="a", run=stuck, seconds=0.01, late="no answer", hint="wait")
    quick = Check(name="b", level="ok", text="fine")
    assert await run_jobs([late, known_checks(quick)]) == [
        Check(name="a", level="error", text="no answer", hint="wait"),
        quick,
    ]


async def test_jobs_run_at_the_same_time() -> None:
    begun = [anyio.Event(), anyio.Event()]

    async def meet(own: int) -> Sequence[Check]:
        begun[own].set()
        await begun[1 - own].wait()
        return (Check(name=str(own), level="ok", text="met"),)

    async def first() -> Sequence[Check]:
        return await meet(0)

    async def second() -> Sequence[Check]:
        return await meet(1)

    jobs = [CheckJob(name=name, run=run, seconds=60) for name, run in (("0", first), ("1", second))]
    assert [one.text for one in await run_jobs(jobs)] == ["met", "met"]


@pytest.mark.parametrize("error", [StoreUnavailable("gone"), PermissionError(13, "refused")])
async def test_an_error_of_a_job_becomes_a_line(error: Exception) -> None:
    async def failing() -> Sequence[Check]:
        raise error

    (found,) = await run_jobs([CheckJob(name="a", run=failing)])
    assert (found.level, found.text) == ("error", str(error))
