"""`/health` and `/ready` report the state of the gateway."""

from pathlib import Path

import msgspec
import pytest
from starlette.requests import Request

from hermes import __version__
from hermes.entry.http.health import Readiness, health, readiness
from hermes.testing.asgi import call, http_scope
from hermes.testing.running import Conditions, TroubledStore, running
from hermes.testing.scripted import ScriptedModel


async def test_health_reports_the_version() -> None:
    scope = http_scope()
    response = await call(await health(Request(scope)), scope)
    assert msgspec.json.decode(response.body) == {
        "status": "ok",
        "platform": "hermes-agent",
        "version": __version__,
    }


@pytest.mark.parametrize("trouble", [None, "the disk is full"])
async def test_the_gateway_is_ready_while_messages_can_be_stored(
    tmp_path: Path, trouble: str | None
) -> None:
    class Failing(TroubledStore):
        """A store whose property `trouble` has a given value: the reason why the last commit
        failed, or None."""

        @property
        def trouble(self) -> str | None:
            return trouble

    async def before(name: str) -> None:
        pass

    conditions = Conditions(wrap_store=lambda store: Failing(store, before))
    scope = http_scope()
    async with running(tmp_path, [], ScriptedModel([]), conditions) as gateway:
        response = await call(await readiness(gateway)(Request(scope)), scope)
    assert response.status == (503 if trouble else 200)
    assert msgspec.json.decode(response.body).get("reason") == trouble


async def test_the_gateway_is_degraded_while_a_chat_account_is_down(tmp_path: Path) -> None:
    scope = http_scope()
    async with running(tmp_path, [], ScriptedModel([])) as gateway:
        ready = readiness(gateway)
        gateway.accounts.set("chat", "connected")
        gateway.accounts.set("irc", "waiting", "another process serves it")
        up = await call(await ready(Request(scope)), scope)
        gateway.accounts.set("chat", "connecting", "the server hung up")
        down = await call(await ready(Request(scope)), scope)
    assert (up.status, msgspec.json.decode(up.body)) == (200, {"status": "ok"})
    found = msgspec.json.decode(down.body, type=Readiness)
    assert (down.status, found.status) == (200, "degraded")
    assert [(one.account, one.reason) for one in found.down] == [("chat", "the server hung up")]
