"""Runs gateways that share a store but not a home, and sends requests to these gateways."""

import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from hermes.control.gateway import Gateway
from hermes.testing.running import QUIET, Conditions, running
from hermes.testing.stores import store_reached_by, store_url, stored_rows
from hermes.types.events import Envelope, TextDelta
from hermes.types.identity import OWNER, Principal, Source, TurnId, new_id
from hermes.types.messages import (
    Accepted,
    Asked,
    Attachment,
    MessageEvent,
    Origin,
    Said,
    UserMessage,
)
from hermes.types.models import ModelProvider
from hermes.types.platforms import PlatformAdapter


@asynccontextmanager
async def node(
    folder: Path,
    name: str,
    model: ModelProvider,
    conditions: Conditions = QUIET,
    adapters: tuple[PlatformAdapter, ...] = (),
    shared_folder: str = "",
) -> AsyncIterator[Gateway]:
    """Runs a gateway whose home is the subfolder `name` of `folder`. All gateways with the same
    `folder` share one database."""
    with store_reached_by(folder / name, store_url(folder), shared_folder=shared_folder):
        async with running(folder / name, adapters, model, conditions) as gateway:
            yield gateway


async def asked(
    gateway: Gateway, text: str, session: str = "s", files: tuple[Attachment, ...] = ()
) -> TurnId:
    """Sends an API request to the gateway. Returns the turn that answers the request."""
    message = UserMessage(text=text, attachments=files)
    receipt = await gateway.accept(
        api_event(Asked(messages=(message,), stateless=False, detached=True), session)
    )
    assert isinstance(receipt, Accepted), receipt
    assert receipt.turn is not None
    return TurnId(receipt.turn)


async def said(gateway: Gateway, text: str, session: str = "s") -> Accepted:
    """Sends a message of a person, such as a command, to the gateway. `asked` with the same
    `session` uses the same session."""
    receipt = await gateway.accept(api_event(Said(text=text), session))
    assert isinstance(receipt, Accepted)
    return receipt


def api_event(body: Asked | Said, session: str = "s", key: str = "") -> MessageEvent:
    """Returns the event for an API request. `key` is its idempotency key."""
    return MessageEvent(
        dedupe_key=key or new_id(),
        fingerprint=key,
        source=Source(
            platform="api", account="api", chat_kind="private", chat_id=session, user_id="k"
        ),
        origin=Origin(trigger="api", principal=Principal(name="api", person=OWNER)),
        received_at=time.time(),
        body=body,
    )


async def followed(gateway: Gateway, turn: TurnId, found: list[Envelope], after: int = 0) -> None:
    async with aclosing(gateway.follow(turn, after)) as events:
        async for one in events:
            found.append(one)


def text_of(found: list[Envelope]) -> str:
    return "".join(one.event.text for one in found if isinstance(one.event, TextDelta))


def states(folder: Path) -> list[tuple[str, int]]:
    return [
        (row[0], row[1])
        for row in stored_rows(folder, "select state, epoch from turns order by started_at, id")
    ]
