"""Messages are admitted if they are addressed to the agent and their sender may talk to it."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.control.gateway import Gateway
from hermes.settings.sections import AccessSettings
from hermes.testing.platforms import Update, to_event
from hermes.testing.running import QUIET, rows, running
from hermes.testing.scripted import ScriptedModel, says
from hermes.types.messages import Accepted, Invited, MessageEvent, Refused

KNOWN = replace(QUIET, access=AccessSettings(allowed_users=("7",)))


def message(user: str = "7", number: int = 1) -> MessageEvent:
    update = Update(id=number, chat="1", user=user, text="hi")
    event = to_event(update, "plain")
    return replace(event, source=replace(event.source, chat_kind="group"))


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with running(tmp_path, [], ScriptedModel([says("hello")]), KNOWN) as gateway:
        yield gateway


async def test_a_message_to_somebody_else_is_refused_and_logged_only_for_debugging(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    event = replace(message(), addressed=False)
    assert not gateway.admits(event)
    assert await gateway.accept(event) == Refused(reason="not admitted")
    assert "not admitted" not in caplog.text


async def test_a_stranger_in_a_group_is_refused_without_a_reply(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert await gateway.accept(message(user="8")) == Refused(reason="not admitted")
    assert "not admitted: user 8 of plain" in caplog.text
    assert await rows(gateway._store, "select * from deliveries") == []


async def test_the_later_parts_of_an_addressed_album_are_admitted(gateway: Gateway) -> None:
    later = replace(message(number=2), addressed=False, album="a")
    assert not gateway.admits(later)
    assert gateway.admits(replace(message(), album="a"))
    assert gateway.admits(later)
    assert not gateway.admits(replace(later, album="b"))


async def test_only_invitations_of_admitted_people_to_a_group_are_accepted(
    gateway: Gateway,
) -> None:
    invited = replace(message(), body=Invited())
    assert await gateway.accept(invited) == Accepted(id=invited.dedupe_key)
    stranger = replace(message(user="8"), body=Invited())
    assert await gateway.accept(stranger) == Refused(reason="not admitted")
