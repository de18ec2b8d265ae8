"""Health and readiness."""

from pathlib import Path

import msgspec
import pytest
from starlette.requests import Request

from hermes import __version__
from hermes.entry.http.health import health, readiness
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
        """A store that reports `trouble` as the result of its last commit."""

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
