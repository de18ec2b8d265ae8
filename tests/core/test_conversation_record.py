"""The record knows which files the model has seen, which texts were mentioned, and whether a part
of the conversation was written by strangers."""

from pathlib import Path

import msgspec
import pytest

from hermes.core.conversation_record import ConversationRecord
from hermes.testing.turns import a_turn
from hermes.types.identity import CallId
from hermes.types.messages import (
    AssistantMessage,
    Attachment,
    Message,
    ToolCall,
    ToolMessage,
    UserMessage,
)

WEB = frozenset({"web_extract"})


def called(name: str, path: str, number: int = 0) -> ToolCall:
    return ToolCall(id=CallId(f"t_{number}_0"), name=name, arguments=f'{{"path": "{path}"}}')


def exchange(call: ToolCall, text: str = "ok", *, failed: bool = False) -> tuple[Message, ...]:
    return (
        UserMessage(text="go"),
        AssistantMessage(calls=(call,)),
        ToolMessage(call=call.id, text=text, failed=failed),
    )


@pytest.mark.parametrize("tool", ["read_file", "write_file", "patch"])
def test_a_file_is_known_after_it_was_read_or_written(tmp_path: Path, tool: str) -> None:
    turn = a_turn(*exchange(called(tool, "a/./f")), workspace=tmp_path)
    record = ConversationRecord(turn, ())
    assert record.knows_file("a/f")
    assert record.knows_file(str(tmp_path / "a" / "f"))
    assert not record.knows_file("f")


def test_a_file_is_not_known_because_another_file_was_read(tmp_path: Path) -> None:
    record = ConversationRecord(a_turn(*exchange(called("read_file", "f")), workspace=tmp_path), ())
    assert not record.knows_file("g")
    record.add(called("write_file", "h"), ok())
    assert not record.knows_file("g")
    assert record.knows_file("h")


def test_a_file_is_not_known_after_a_failed_call_or_another_tool(tmp_path: Path) -> None:
    failed = a_turn(*exchange(called("read_file", "f"), failed=True), workspace=tmp_path)
    assert not ConversationRecord(failed, ()).knows_file("f")
    searched = a_turn(*exchange(called("search_files", "f")), workspace=tmp_path)
    assert not ConversationRecord(searched, ()).knows_file("f")
    record = ConversationRecord(a_turn(workspace=tmp_path), ())
    record.add(ToolCall(id=CallId("t_0_0"), name="read_file", arguments="["), ok())
    assert not record.knows_file("f")


def test_the_record_includes_calls_of_the_present_run(tmp_path: Path) -> None:
    record = ConversationRecord(a_turn(workspace=tmp_path), WEB)
    assert not record.knows_file("f")
    record.add(called("read_file", "f"), ok())
    assert record.knows_file("f")
    before = record.tainted
    record.add(called("web_extract", ""), ok("see http://a.example/x"))
    assert (before, record.tainted) == (False, True)
    assert record.was_mentioned("http://a.example/x")
    assert not record.was_mentioned("http://a.example/y")


def ok(text: str = "ok") -> ToolMessage:
    return ToolMessage(call=CallId("t_0_0"), text=text)


def test_a_page_that_was_read_in_an_earlier_turn_was_written_by_others() -> None:
    turn = a_turn(*exchange(called("web_extract", "")), UserMessage(text="and now?"))
    assert ConversationRecord(turn, WEB).tainted
    assert not ConversationRecord(turn, ()).tainted


@pytest.mark.parametrize(
    "message",
    [
        UserMessage(text="", attachments=(Attachment(kind="file", path="p"),)),
        UserMessage(text="earlier messages", summary=True),
    ],
)
def test_received_files_and_summaries_may_contain_text_by_others(message: UserMessage) -> None:
    assert ConversationRecord(a_turn(message), ()).tainted
    assert not ConversationRecord(a_turn(UserMessage(text="hi")), ()).tainted


def test_a_summary_of_trusted_messages_is_trusted() -> None:
    notes = UserMessage(text="earlier messages", summary=True, trusted=True)
    assert not ConversationRecord(a_turn(notes, UserMessage(text="hi")), ()).tainted


def ran(command: str) -> tuple[Message, ...]:
    arguments = msgspec.json.encode({"command": command}).decode()
    return exchange(ToolCall(id=CallId("t_0_0"), name="terminal", arguments=arguments), command)


@pytest.mark.parametrize(
    ("command", "tainted"),
    [
        ("curl -s http://a.example | head", True),
        ("text=$(wget -qO- http://a.example); echo $text", True),
        ("git push", False),
        ("pip install x", False),
        ("echo curl http://a.example", False),
    ],
)
def test_the_output_of_a_download_was_written_by_others(command: str, *, tainted: bool) -> None:
    assert ConversationRecord(a_turn(*ran(command)), WEB).tainted is tainted


def test_damaged_arguments_of_a_command_download_nothing() -> None:
    call = ToolCall(id=CallId("t_0_0"), name="terminal", arguments="[")
    assert not ConversationRecord(a_turn(*exchange(call)), WEB).tainted


URL = "http://evil.example/?data=secret"


def searched(arguments: str) -> tuple[Message, ...]:
    call = ToolCall(id=CallId("t_0_0"), name="web_search", arguments=arguments)
    return exchange(call, f"Found for {URL}: nothing")


@pytest.mark.parametrize(
    ("history", "mentioned"),
    [
        (ran(f"echo {URL}"), False),
        (searched('{"query": "http:\\/\\/evil.example/?data=secret"}'), False),
        (searched("["), True),
        (searched('{"query": "data"}'), True),
        ((UserMessage(text=f"open {URL}"),), True),
        ((UserMessage(text=f"open {URL}", summary=True),), False),
    ],
)
def test_an_address_that_the_model_has_written_is_not_mentioned(
    history: tuple[Message, ...], *, mentioned: bool
) -> None:
    record = ConversationRecord(a_turn(*history), {"web_search"})
    assert record.was_mentioned(URL) is mentioned
