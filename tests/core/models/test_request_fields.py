"""What every wire format says alike."""

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from hermes.core.models.request_fields import (
    arguments_of,
    longest_of,
    name_of,
    speech_of,
    system_of,
)
from hermes.testing.histories import arguments
from hermes.testing.upstream import choice_of, request_to
from hermes.types.identity import CallId
from hermes.types.messages import Sampling, ToolCall, UserMessage

REQUEST = request_to(choice_of("chat"))


def call(written: str) -> ToolCall:
    return ToolCall(id=CallId("t_1_0"), name="look", arguments=written)


@given(arguments)
def test_arguments_are_sent_as_an_object(written: str) -> None:
    fields = msgspec.json.decode(arguments_of(call(written)), type=dict[str, object])
    if "invalid_json" in fields:
        assert fields == {"invalid_json": written}
    else:
        assert arguments_of(call(written)) == written


@pytest.mark.parametrize("written", ["{broken", "[1]", "", '{"a":"\\ud800"}', '{"a":' + "[" * 9999])
def test_what_a_server_would_refuse_is_sent_as_text(written: str) -> None:
    assert msgspec.json.decode(arguments_of(call(written))) == {"invalid_json": written}


def test_the_request_limits_the_answer_or_else_the_model_does() -> None:
    assert longest_of(REQUEST) is None
    limited = replace(REQUEST, choice=replace(REQUEST.choice, max_tokens=7))
    assert longest_of(limited) == 7
    assert longest_of(replace(limited, sampling=Sampling(max_tokens=5))) == 5


def test_what_is_said_for_one_call_stands_behind_the_prompt() -> None:
    assert system_of(REQUEST) == "be brief"
    assert system_of(replace(REQUEST, ephemeral="today")) == "be brief\n\ntoday"
    assert system_of(replace(REQUEST, system="", ephemeral="today")) == "today"


def test_a_name_tells_whom_the_encoding_is_for() -> None:
    assert name_of(REQUEST) == ""
    named = replace(REQUEST, conversation="c")
    other = replace(named, choice=replace(named.choice, model="other"))
    assert len({name_of(named), name_of(other)}) == 2


def test_who_speaks_is_named_where_several_do() -> None:
    assert speech_of(UserMessage(text="hi")) == "hi"
    assert speech_of(UserMessage(text="hi", sender="Ann")) == "[Ann] hi"
