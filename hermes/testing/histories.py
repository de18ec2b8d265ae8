"""Draws random conversations that the store can contain, for property tests."""

import string

import msgspec
from hypothesis import strategies as st

from hermes.types.identity import CallId
from hermes.types.messages import (
    AssistantMessage,
    Echo,
    Message,
    ToolCall,
    ToolMessage,
    UserMessage,
)

ScriptedHistory = tuple[Message, ...]

texts = st.text(max_size=20)
names = st.text(string.ascii_lowercase + "_", min_size=1, max_size=8)
_values = st.none() | st.booleans() | st.integers(-9, 9) | texts
_objects = st.dictionaries(texts, _values | st.lists(_values, max_size=2), max_size=3)
arguments = _objects.map(lambda fields: msgspec.json.encode(fields).decode()) | texts
"""JSON arguments, or the invalid text that a confused model writes instead."""
people = st.builds(UserMessage, text=texts, sender=st.none() | names)
NO_ECHO: st.SearchStrategy[Echo | None] = st.none()


@st.composite
def _steps(draw: st.DrawFn, step: str, echoes: st.SearchStrategy[Echo | None]) -> ScriptedHistory:
    """Draws an answer with tool calls, and a result for each call."""
    wanted = draw(st.lists(st.tuples(names, arguments), min_size=1, max_size=3))
    calls = tuple(
        ToolCall(id=CallId(f"{step}_{index}"), name=name, arguments=written)
        for index, (name, written) in enumerate(wanted)
    )
    said = AssistantMessage(text=draw(texts), calls=calls, echo=draw(echoes))
    # The order of the results can differ from the order of the calls: if a call waits for a person,
    # its result is stored last.
    results = [
        ToolMessage(call=call.id, text=draw(texts), failed=draw(st.booleans()))
        for call in draw(st.permutations(calls))
    ]
    return said, *results


@st.composite
def histories(
    draw: st.DrawFn, echoes: st.SearchStrategy[Echo | None] = NO_ECHO
) -> tuple[ScriptedHistory, ...]:
    """Draws a conversation that grows. Each item is the whole history before one model call, and
    begins with all messages of the item before it."""
    said: list[Message] = []
    found: list[ScriptedHistory] = []
    for turn in range(draw(st.integers(1, 4))):
        said += draw(st.lists(people, min_size=1, max_size=2))
        found.append(tuple(said))
        for step in range(draw(st.integers(0, 3))):
            said += draw(_steps(f"019a0{turn:x}c3d4e5f6a7b8c9d_{step}", echoes))
            found.append(tuple(said))
        # A failed turn has no answer.
        if draw(st.booleans()):
            said.append(AssistantMessage(text=draw(texts)))
    return tuple(found)
