"""The tool `send_message` reports the result for each chat, and checks files before it sends."""

from pathlib import Path

import msgspec
import pytest

from hermes.core.tools.call import CallContext
from hermes.core.tools.send_message import FILE_BYTES, send_message
from hermes.testing.turns import CALL, Notebook, a_turn, files_of, review
from hermes.types.errors import ToolFailed
from hermes.types.sending import OutgoingFile, SendResult


class FakeMessenger:
    """A messenger that records each message in `sent`, and always returns the given results."""

    def __init__(self, *results: SendResult) -> None:
        self._results = results
        self.sent: list[tuple[str, str, tuple[OutgoingFile, ...], bool]] = []

    async def others(self, to: str) -> tuple[str, ...]:
        return () if to == "origin" else (to,)

    async def send(
        self, to: str, text: str, files: tuple[OutgoingFile, ...] = (), *, mirror: bool
    ) -> tuple[SendResult, ...]:
        self.sent.append((to, text, files, mirror))
        return self._results


DELIVERED = SendResult(target="chat:1", state="delivered")
QUEUED = SendResult(target="chat:2", state="queued")
REFUSED = SendResult(target="chat:3", state="refused", reason="kicked")


async def sends(messenger: FakeMessenger | None, workspace: Path, **arguments: object) -> str:
    turn = a_turn(workspace=workspace)
    wanted = {"to": "chat", "text": "the secret news", **arguments}

    def redact(text: str) -> str:
        return text.replace("secret", "***")

    call = send_message.bind(msgspec.json.encode(wanted).decode())
    sandbox, notes = files_of(turn), Notebook()
    context = CallContext(turn, CALL, sandbox, lambda event: None, notes, redact, messenger)
    return await call.run(context)


async def test_the_result_for_each_chat_is_reported(tmp_path: Path) -> None:
    messenger = FakeMessenger(DELIVERED, QUEUED, REFUSED)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "f.txt").write_bytes(b"content")
    told = await sends(messenger, tmp_path, files=["a/f.txt"])
    assert told.splitlines() == [
        "Delivered to chat:1.",
        "Stored for chat:2: it will be sent as soon as possible.",
        "Refused by chat:3: kicked",
    ]
    file = OutgoingFile(name="f.txt", data=b"content")
    assert messenger.sent == [("chat", "the *** news", (file,), True)]


async def test_a_message_that_every_chat_refuses_is_a_failed_call(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="Refused by chat:3: kicked"):
        await sends(FakeMessenger(REFUSED), tmp_path)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("missing", "there is no file 'missing'"),
        (".", "there is no file"),
        (".env", "usually holds secrets"),
        ("large", "more than 50 MB"),
        ("../outside", "outside"),
    ],
)
async def test_a_file_that_can_not_be_sent_stops_the_message(
    tmp_path: Path, path: str, reason: str
) -> None:
    messenger = FakeMessenger(DELIVERED)
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / ".env").write_text("KEY=1")
    with (workspace / "large").open("wb") as large:
        large.truncate(FILE_BYTES + 1)
    with pytest.raises(ToolFailed, match=reason):
        await sends(messenger, workspace, files=[path])
    assert messenger.sent == []


async def test_without_a_chat_platform_nothing_is_sent(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="no chat platform is configured"):
        await sends(None, tmp_path)


async def test_a_message_to_another_chat_needs_approval(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"content")
    turn, messenger = a_turn(workspace=tmp_path), FakeMessenger()
    here = {"to": "origin", "text": "news"}
    assert await review(send_message, turn, here, messenger=messenger) is None
    there = {"to": "chat:2", "text": "news", "files": ["f"]}
    action = await review(send_message, turn, there, messenger=messenger)
    assert action is not None
    assert action.kind == "send a message to chat:2"
    assert action.shown == "news\n[file f, 7 bytes]"
    assert not action.lasting
    (tmp_path / "f").write_bytes(b"changed")
    changed = await review(send_message, turn, there, messenger=messenger)
    assert changed is not None
    assert changed.facts != action.facts


async def test_a_file_that_is_changed_after_the_review_is_sent_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"content")
    turn, messenger = a_turn(workspace=tmp_path), FakeMessenger(DELIVERED)
    notes = Notebook()
    context = CallContext(turn, CALL, files_of(turn), lambda event: None, notes, str, messenger)
    call = send_message.bind('{"to": "chat:2", "files": ["f"]}')
    assert await call.review(context) is not None
    (tmp_path / "f").write_bytes(b"changed")
    await call.run(context)
    assert messenger.sent[0][2] == (OutgoingFile(name="f", data=b"content"),)
