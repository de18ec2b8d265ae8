"""One provider for every wire format."""

import json
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.models.answer import Answer
from hermes.core.models.chat_chunks import Chunks
from hermes.core.models.message_events import MessageEvents
from hermes.core.models.response_events import ResponseEvents
from hermes.core.models.stream import Events, Reader
from hermes.testing.upstream import STREAM, ask_raw, choice_of
from hermes.types.errors import Disconnected, HermesError
from hermes.types.events import AgentEvent, ReasoningDelta, TextDelta
from hermes.types.messages import AssistantMessage
from hermes.types.profile import Wire

PAYLOADS = sorted(Path(__file__).with_name("payloads").iterdir())
READERS: dict[str, tuple[Wire, Callable[[Answer], Reader]]] = {
    "chat": ("chat", Chunks),
    "responses": ("responses", ResponseEvents),
    "anthropic": ("anthropic", MessageEvents),
}


def started(path: Path) -> tuple[Events, list[AgentEvent]]:
    wire, reader = READERS[path.stem.partition("_")[0]]
    events: list[AgentEvent] = []
    answer = Answer(choice_of(wire), events.append)
    return Events(answer, reader(answer)), events


def fed(path: Path, pieces: list[bytes]) -> tuple[AssistantMessage, str, list[AgentEvent]]:
    stream, events = started(path)
    for piece in pieces:
        stream.feed(piece)
    stream.end()
    message = stream.answer.message("t_1")
    deltas = [event for event in events if isinstance(event, TextDelta | ReasoningDelta)]
    rest = [event for event in events if event not in deltas]
    return message, "".join(event.text for event in deltas), rest


@settings(deadline=None)
@given(st.sampled_from(PAYLOADS), st.lists(st.integers(0, 3000)))
def test_a_stream_means_the_same_however_it_is_cut(path: Path, cuts: list[int]) -> None:
    stream = path.read_bytes()
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    assert fed(path, [stream[start:end] for start, end in pairwise(edges)]) == fed(path, [stream])


@pytest.mark.parametrize("path", PAYLOADS, ids=lambda path: path.stem)
def test_a_stream_can_come_byte_by_byte(path: Path) -> None:
    stream = path.read_bytes()
    assert fed(path, [bytes([byte]) for byte in stream]) == fed(path, [stream])


@pytest.mark.parametrize("path", PAYLOADS, ids=lambda path: path.stem)
def test_a_stream_that_is_cut_anywhere_gives_the_whole_message_or_none(path: Path) -> None:
    stream = path.read_bytes()
    whole, *_ = fed(path, [stream])
    given_up = 0
    for end in range(len(stream)):
        cut, _ = started(path)
        cut.feed(stream[:end])
        try:
            if not cut.answer.finished:
                cut.end()
            assert cut.answer.message("t_1") == whole
        except Disconnected:
            given_up += 1
    assert given_up > len(stream) // 2


def spoiled(value: object, wrong: object, at: int) -> tuple[object, int]:
    """The JSON with its part number `at` replaced, and how many parts were counted."""
    if at == 0:
        return wrong, -1
    at -= 1
    if isinstance(value, dict):
        fields = {}
        for name, part in value.items():
            fields[name], at = spoiled(part, wrong, at)
        return fields, at
    if isinstance(value, list):
        parts = []
        for part in value:
            found, at = spoiled(part, wrong, at)
            parts.append(found)
        return parts, at
    return value, at


wrongs = st.sampled_from([None, True, 7, -1.5, "", "x", [], {}, [None], {"type": None}])


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PAYLOADS), wrongs, st.integers(0, 40), st.integers(0, 40))
def test_whatever_a_server_sends_is_an_answer_or_one_of_our_errors(
    path: Path, wrong: object, line: int, at: int
) -> None:
    lines = [line[5:] for line in path.read_bytes().splitlines() if line.startswith(b"data:")]
    payloads = [json.loads(one) for one in lines if one.strip() != b"[DONE]"]
    index = line % len(payloads)
    payloads[index], _ = spoiled(payloads[index], wrong, at)
    stream, _ = started(path)
    with suppress(HermesError):
        stream.take([json.dumps(one).encode() for one in payloads])
        stream.answer.message("t_1")


@pytest.mark.parametrize("wire", ["chat", "responses", "anthropic"])
async def test_the_chosen_model_says_what_is_spoken(wire: Wire) -> None:
    for path in PAYLOADS:
        spoken = path.stem.startswith(wire)
        if "text" in path.stem:
            response = STREAM + path.read_bytes()
            if spoken:
                assert (await ask_raw(wire, response))[0].text
            else:
                with pytest.raises(Disconnected):
                    await ask_raw(wire, response)
