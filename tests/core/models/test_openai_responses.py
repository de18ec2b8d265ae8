"""Requests for OpenAI's responses."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hermes.core.models.openai_responses import encode
from hermes.core.models.prefixes import WORTH, Prefixes
from hermes.testing.histories import History, histories, texts
from hermes.testing.upstream import choice_of, request_to
from hermes.testing.vendors import check
from hermes.types.identity import CallId
from hermes.types.messages import (
    AssistantMessage,
    Echo,
    Message,
    Sampling,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from hermes.types.protocols import ModelRequest

CHOICE = choice_of("responses")
CALLS = (
    ToolCall(id=CallId("t_1_0"), name="look", arguments='{"at":1}'),
    ToolCall(id=CallId("t_1_1"), name="listen", arguments="{broken"),
)
RESULTS = (
    ToolMessage(call=CALLS[0].id, text="sky"),
    ToolMessage(call=CALLS[1].id, text="", failed=True),
)
THOUGHT = {"type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": "sealed"}
echoes = st.none() | st.builds(
    lambda model, text: Echo(
        wire="responses",
        model=model,
        body=msgspec.json.encode([[0, THOUGHT | {"encrypted_content": text}]]).decode(),
    ),
    st.sampled_from([CHOICE.model, "other"]),
    texts,
)


def sent(request: ModelRequest) -> dict[str, object]:
    return msgspec.json.decode(encode(request), type=dict[str, object])


def items(*said: Message) -> list[dict[str, object]]:
    return msgspec.convert(sent(request_to(CHOICE, *said))["input"], list[dict[str, object]])


@settings(max_examples=50, deadline=None)
@given(histories(echoes))
def test_whatever_was_said_is_what_openai_takes(found: tuple[History, ...]) -> None:
    check("responses", encode(request_to(CHOICE, *found[-1])))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (b'"arguments"', b'"argument"'),
        (b'"call_id":"t_1_0","output"', b'"call_id":"t_9_9","output"'),
        (b'"output":"sky"', b'"output":7'),
        (b'"strict":false', b'"strict":"no"'),
    ],
)
def test_what_openai_does_not_take_is_noticed(right: bytes, wrong: bytes) -> None:
    said = AssistantMessage(calls=CALLS)
    body = encode(request_to(CHOICE, UserMessage(text="hi"), said, *RESULTS))
    check("responses", body)
    assert right in body
    with pytest.raises(ValueError, match=r"."):
        check("responses", body.replace(right, wrong))


@settings(deadline=None)
@given(histories(echoes))
def test_a_longer_conversation_begins_like_the_shorter_one(found: tuple[History, ...]) -> None:
    prefixes = Prefixes()
    bodies = []
    for history in found:
        padded = (*[UserMessage(text="hi")] * WORTH, *history)
        request = replace(request_to(CHOICE, *padded), conversation="c")
        bodies.append(encode(request, prefixes))
        assert bodies[-1] == encode(request)
    for shorter, longer in pairwise(bodies):
        assert longer.startswith(shorter[:-2])


def test_everything_said_is_an_item() -> None:
    echo = Echo(
        wire="responses",
        model=CHOICE.model,
        body=msgspec.json.encode([[0, THOUGHT], [1, THOUGHT]]).decode(),
    )
    said = AssistantMessage(text="so", calls=CALLS, echo=echo)
    found = items(UserMessage(text="hi", sender="Ann"), said, *RESULTS)
    assert found == [
        {"type": "message", "role": "user", "content": "[Ann] hi"},
        THOUGHT,
        {"type": "message", "role": "assistant", "content": "so"},
        THOUGHT,
        {
            "type": "function_call",
            "call_id": "t_1_0",
            "name": "look",
            "arguments": '{"at":1}',
        },
        {
            "type": "function_call",
            "call_id": "t_1_1",
            "name": "listen",
            "arguments": '{"invalid_json":"{broken"}',
        },
        {"type": "function_call_output", "call_id": "t_1_0", "output": "sky"},
        {"type": "function_call_output", "call_id": "t_1_1", "output": ""},
    ]
    other = replace(said, echo=replace(echo, model="other"))
    assert THOUGHT not in items(UserMessage(text="hi"), other, *RESULTS)


def test_nothing_is_stored_and_only_options_that_are_set_are_sent() -> None:
    plain = replace(request_to(CHOICE), tools=())
    assert sent(plain) == {
        "model": "some-1",
        "stream": True,
        "store": False,
        "instructions": "be brief",
        "include": ["reasoning.encrypted_content"],
        "input": [{"type": "message", "role": "user", "content": "hi"}],
    }
    sampling = Sampling(
        temperature=0.0, top_p=0.5, max_tokens=5, stop=("a",), seed=1, reasoning_effort="low"
    )
    chosen = sent(replace(plain, sampling=sampling, ephemeral="today"))
    added = {name: value for name, value in chosen.items() if value != sent(plain).get(name)}
    assert added == {
        "instructions": "be brief\n\ntoday",
        "temperature": 0.0,
        "top_p": 0.5,
        "max_output_tokens": 5,
        "reasoning": {"effort": "low"},
    }


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4.1-mini", "chatgpt-4o-latest"])
def test_models_that_do_not_think_are_not_asked_for_thoughts(model: str) -> None:
    assert "include" not in sent(request_to(replace(CHOICE, model=model)))
