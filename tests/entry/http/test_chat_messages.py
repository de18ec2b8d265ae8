"""The messages of a request are divided into history, new messages and results of tools."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.entry.http.chat_messages import (
    ReadMessages,
    RequestMessage,
    attached_contents,
    instructions_of,
    read_messages,
)
from hermes.entry.http.content_parts import MOST_PARTS
from hermes.entry.http.errors import ApiError
from hermes.types.identity import CallId, new_id
from hermes.types.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage

TURN = new_id()


def messages(*given: object) -> list[RequestMessage]:
    """Returns the messages of a request from (role, content) pairs or whole objects."""
    built = [{"role": m[0], "content": m[1]} if isinstance(m, tuple) else m for m in given]
    return msgspec.json.decode(msgspec.json.encode(built), type=list[RequestMessage])


def read(*given: object, in_session: bool = False) -> ReadMessages:
    return read_messages(messages(*given), in_session=in_session)


def calling(*ids: str, content: str | None = None) -> dict[str, object]:
    made = [
        {"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        for id in ids
    ]
    return {"role": "assistant", "content": content, "tool_calls": made}


def result(id: str, text: str = "seen") -> dict[str, object]:
    return {"role": "tool", "tool_call_id": id, "content": text}


def refused(*given: object, in_session: bool = False) -> tuple[int, str, str | None]:
    with pytest.raises(ApiError) as caught:
        read(*given, in_session=in_session)
    return caught.value.status, caught.value.code, caught.value.param


SAID = (
    ("system", "be brief"),
    ("developer", "be kind"),
    ("user", "hi"),
    ("assistant", "hello"),
    ("assistant", None),
    ("user", [{"type": "text", "text": "and"}, {"type": "input_text", "text": "now?"}]),
)


def test_user_and_assistant_messages_are_history_and_system_messages_are_instructions() -> None:
    assert instructions_of(messages(*SAID)) == "be brief\nbe kind"
    assert read(*SAID).messages == (
        UserMessage(text="hi"),
        AssistantMessage(text="hello"),
        UserMessage(text="and\nnow?"),
    )
    assert read(*SAID, in_session=True).messages == (UserMessage(text="and\nnow?"),)


def test_without_an_assistant_message_all_messages_are_new() -> None:
    said = read(("user", "a"), ("user", "b"), in_session=True)
    assert said.messages == (UserMessage(text="a"), UserMessage(text="b"))


def test_a_conversation_that_ends_with_the_assistant_has_no_new_messages() -> None:
    assert refused(("user", "a"), ("assistant", "b"), in_session=True)[1] == "invalid_request"


def test_the_error_for_an_unknown_role_lists_the_roles_that_can_be_used() -> None:
    with pytest.raises(ApiError) as caught:
        read(("wizard", "hi"))
    roles = re.findall(r"'(\w+)'", str(caught.value).partition(": use ")[2])
    assert set(roles) == {"user", "assistant", "system", "developer", "tool"}


@pytest.mark.parametrize(
    ("role", "content", "code", "param"),
    [
        ("wizard", "hi", "invalid_role", "messages[0].role"),
        ("system", "only", "invalid_request", "messages"),
        ("user", [{"type": "video"}], "unsupported_content_type", "messages[0].content"),
        ("user", [{"text": "x"}] * (MOST_PARTS + 1), "invalid_request", "messages[0].content"),
        ("tool", "no id", "invalid_request", "messages[0].tool_call_id"),
    ],
)
def test_the_error_names_the_message_that_can_not_be_used(
    role: str, content: object, code: str, param: str
) -> None:
    assert refused((role, content)) == (400, code, param)


def test_only_user_messages_have_attachments() -> None:
    image = [{"type": "image_url", "image_url": {"url": "x"}}]
    with pytest.raises(ApiError) as caught:
        instructions_of(messages(("system", image)))
    assert caught.value.param == "messages[0].content[0]"
    assert refused(("user", "x"), ("assistant", image))[1] == "unsupported_content_type"


def test_only_the_attachments_of_used_messages_are_collected() -> None:
    image = [{"type": "image_url", "image_url": {"url": "x"}}]
    said = messages(("user", image), ("assistant", "a"), ("user", image))
    assert list(attached_contents(said, in_session=False)) == [0, 2]
    assert list(attached_contents(said, in_session=True)) == [2]
    call = f"{TURN}_0_0"
    resuming = messages(("user", image), calling(call), result(call), ("user", image))
    assert list(attached_contents(resuming, in_session=False)) == [3]


def test_results_of_our_calls_resume_their_turn_and_later_messages_follow() -> None:
    first, second = f"{TURN}_0_0", f"{TURN}_0_2"
    said = read(
        ("user", "go"), calling(first, second), result(second), result(first), ("user", "ok")
    )
    assert [one.call for one in said.results] == [second, first]
    assert said.messages == (UserMessage(text="ok"),)


def test_in_a_session_results_may_come_without_the_conversation() -> None:
    said = read(result(f"{TURN}_3_1"), in_session=True)
    assert said == ReadMessages(
        messages=(), results=(ToolMessage(call=CallId(f"{TURN}_3_1"), text="seen"),)
    )


def test_answered_calls_of_any_gateway_are_plain_history() -> None:
    ours = f"{TURN}_0_0"
    said = read(
        ("user", "go"),
        calling(ours, "call_abc", content="let me see"),
        result("call_abc", "b"),
        result(ours, "a"),
        ("assistant", "done"),
        ("user", "thanks"),
    )
    assert not said.results
    asked = said.messages[1]
    assert isinstance(asked, AssistantMessage)
    assert asked.text == "let me see"
    assert [call.id for call in asked.calls] == ["history_0", "history_1"]
    assert said.messages[2:4] == (
        ToolMessage(call=CallId("history_1"), text="b"),
        ToolMessage(call=CallId("history_0"), text="a"),
    )


@pytest.mark.parametrize("in_session", [True, False])
def test_calls_of_other_gateways_and_their_results_are_history(in_session: bool) -> None:
    said = read(("user", "go"), calling("call_abc"), result("call_abc", "a"), in_session=in_session)
    call = ToolCall(id=CallId("history_0"), name="look", arguments="{}")
    assert not said.results
    assert said.messages[-2:] == (
        AssistantMessage(calls=(call,)),
        ToolMessage(call=call.id, text="a"),
    )


def test_a_history_with_unpaired_calls_or_results_is_refused() -> None:
    go = ("user", "go")
    missing = (400, "missing_tool_results", "messages[2]")
    assert refused(go, calling("a", "b"), result("a"), ("user", "x"))[:2] == missing[:2]
    assert refused(go, calling("a"), ("user", "x")) == missing
    assert refused(go, calling("a"), ("assistant", "b"), go)[:2] == missing[:2]
    assert refused(go, result("a")) == (400, "unknown_tool_call", "messages[1].tool_call_id")
    twice = refused(go, calling("a"), result("a"), result("a"))
    assert twice == (400, "unknown_tool_call", "messages[3].tool_call_id")


def test_a_history_with_two_calls_that_have_the_same_id_is_refused() -> None:
    twice = refused(("user", "go"), calling("a", "a"), result("a"))
    assert twice == (400, "repeated_tool_call", "messages[1].tool_calls")


def test_results_of_several_steps_and_duplicate_results_are_refused() -> None:
    one, other = f"{TURN}_0_0", f"{TURN}_1_0"
    assert refused(result(one), result(other))[1] == "mixed_tool_results"
    assert refused(result(one), result("call_abc"))[1] == "mixed_tool_results"
    assert refused(result(one), result(f"{new_id()}_0_0"))[1] == "mixed_tool_results"
    assert refused(result(one), result(one))[1] == "repeated_tool_result"


def test_calls_of_unknown_types_and_names_are_refused() -> None:
    custom = {"role": "assistant", "tool_calls": [{"id": "a", "type": "custom"}]}
    assert refused(("user", "x"), custom)[1:] == (
        "unsupported_tool_type",
        "messages[1].tool_calls[0]",
    )
    named = {"id": "a", "function": {"name": "two words"}}
    assert refused(("user", "x"), {"role": "assistant", "tool_calls": [named]})[1] == "invalid_tool"


def test_the_model_sees_the_name_of_a_participant() -> None:
    said = read({"role": "user", "content": "hi", "name": "Ada"})
    assert said.messages == (UserMessage(text="hi", sender="Ada"),)


@pytest.mark.parametrize("name", ["x" * 65, "a\nb"])
def test_a_name_is_short_and_printable(name: str) -> None:
    assert refused({"role": "user", "content": "hi", "name": name})[2] == "messages[0].name"


def test_a_refusal_counts_as_text_of_the_assistant() -> None:
    said = read({"role": "assistant", "content": None, "refusal": "No."}, ("user", "hi"))
    assert said.messages[0] == AssistantMessage(text="No.")


IDS = st.sampled_from(["a", "b", "c", f"{TURN}_0_0", f"{TURN}_0_1", f"{TURN}_1_0"])
ANY = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["user", "assistant", "system"]), st.text(max_size=3)),
        st.lists(IDS, min_size=1, max_size=3, unique=True).map(lambda ids: calling(*ids)),
        IDS.map(result),
    ),
    max_size=8,
)


@given(ANY, st.booleans())
def test_every_accepted_request_has_all_results_or_resumes_one_step(
    said: list[object], session: bool
) -> None:
    try:
        found = read(*said, in_session=session)
    except ApiError:
        return
    if found.results:
        assert all(isinstance(one, UserMessage) for one in found.messages)
        assert len({one.call.rpartition("_")[0] for one in found.results}) == 1
        return
    waiting: set[str] = set()
    for message in found.messages:
        if isinstance(message, ToolMessage):
            waiting.remove(message.call)
            continue
        assert not waiting
        if isinstance(message, AssistantMessage):
            waiting = {call.id for call in message.calls}
    assert not waiting
