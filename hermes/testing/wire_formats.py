"""The contract of every wire format, as a test class to inherit from.

class TestAcme(WireFormatContract):
    def wire(self) -> WireFormat:
        return AcmeWire()
    ...
"""

import asyncio
import json
import string
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Literal

import aiohttp
import anyio
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hermes.core.models.answer import StreamedAnswer
from hermes.core.models.client import ModelClient
from hermes.core.models.message_cache import FEWEST_CACHED_MESSAGES
from hermes.core.models.request_fields import given_options
from hermes.core.models.stream import PayloadStream
from hermes.testing.declared_tools import ToolsContract
from hermes.testing.histories import histories, texts
from hermes.testing.samples import SAMPLES
from hermes.testing.upstream import (
    PROVIDER_KEY,
    STREAM,
    answering,
    choice_of,
    json_response,
    read,
    request_to,
)
from hermes.types.errors import Disconnected, HermesError, RateLimited, Rejected
from hermes.types.events import AgentEvent, ReasoningDelta, SegmentEnded, TextDelta
from hermes.types.identity import CallId
from hermes.types.messages import (
    AssistantMessage,
    Attachment,
    AttachmentKind,
    Echo,
    Message,
    Sampling,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from hermes.types.models import WireFormat
from hermes.types.profile import ModelChoice, Quirks

TEXT = "Grüß Gott 👋"
CALLS = (
    ToolCall(id=CallId("t_1_0"), name="look", arguments='{"at":1}'),
    ToolCall(id=CallId("t_1_1"), name="listen", arguments="{}"),
)
RESULTS = (
    ToolMessage(call=CALLS[0].id, text="sky"),
    ToolMessage(call=CALLS[1].id, text="birds", failed=True),
)
SAMPLINGS = (
    Sampling(temperature=0.5),
    Sampling(top_p=0.5),
    Sampling(temperature=0.5, reasoning_effort="high", max_tokens=9000),
    Sampling(reasoning_effort="high", max_tokens=9000, stop=("end",)),
    Sampling(seed=7, presence_penalty=0.5, frequency_penalty=0.5),
)
GARBAGE = (b"7", b'{"type":7,"choices":7}', b'{"type":"\xff"}', b"[" * 9999, b"nonsense")

# Several classes inherit each test. A health check of Hypothesis forbids this, so the health check
# is turned off.
inherited = settings(deadline=None, suppress_health_check=[HealthCheck.differing_executors])
wrongs = st.sampled_from([None, True, 7, -1.5, "", "x", [], {}, [None], {"type": None}])


class WireFormatContract(ToolsContract):
    """Checks that the vendor accepts our requests, and that an answer is read correctly, no matter
    into which pieces the network cuts its stream."""

    mistakes: Sequence[tuple[bytes, bytes]] = ()
    """Pairs (right, wrong). The request body for `CALLS` and `RESULTS` contains `right`. With
    `wrong` in its place, the vendor refuses the request."""
    error: bytes
    """A payload that the vendor sends instead of an answer: the error `slow down` with status
    429."""
    end: bytes = b"]}"
    """The end of a request body, after its last message."""

    def wire(self) -> WireFormat:
        """Returns a new object with empty caches."""
        raise NotImplementedError

    def check(self, body: bytes) -> None:
        """Raises ValueError if the vendor would refuse the body of a request."""
        raise NotImplementedError

    def recordings(self) -> Sequence[Path]:
        """Returns files with streams that real servers have sent."""
        raise NotImplementedError

    def recorded_text(self) -> bytes:
        """Returns a recorded stream with the answer `TEXT`."""
        raise NotImplementedError

    def recorded_calls(self) -> bytes:
        """Returns a recorded stream with the calls `CALLS`."""
        raise NotImplementedError

    def recorded_cut(self) -> bytes:
        """Returns the stream of `recorded_calls`, but cut off at the limit of output tokens."""
        raise NotImplementedError

    def echo(self, text: str) -> str:
        """Returns the body of an `Echo`, with this text in it. An `Echo` is data that a vendor
        sends with an answer and expects back in the next request."""
        raise NotImplementedError

    def unmarked(self, body: bytes) -> bytes:
        """Returns the body without the vendor's cache marks, which move when the conversation
        grows."""
        return body

    def choice(self, base_url: str = "http://127.0.0.1:9/v1") -> ModelChoice:
        return choice_of(self.wire().name, base_url)

    @inherited
    @given(st.data())
    def test_the_vendor_accepts_every_conversation(self, data: st.DataObject) -> None:
        found = data.draw(histories(self._echoes()))
        self.check(self.wire().body(request_to(self.choice(), *found[-1])))

    def test_the_vendor_refuses_mistakes(self) -> None:
        said = (UserMessage(text="hi"), AssistantMessage(calls=CALLS), *RESULTS)
        body = self.wire().body(request_to(self.choice(), *said))
        self.check(body)
        assert self.mistakes
        for right, wrong in self.mistakes:
            assert right in body
            with pytest.raises(ValueError, match=r"."):
                self.check(body.replace(right, wrong))

    @inherited
    @given(st.data())
    def test_a_longer_conversation_begins_like_the_shorter_one(self, data: st.DataObject) -> None:
        wire, bodies = self.wire(), list[bytes]()
        for history in data.draw(histories(self._echoes())):
            padded = (*[UserMessage(text="hi")] * FEWEST_CACHED_MESSAGES, *history)
            request = replace(request_to(self.choice(), *padded), conversation="c")
            body = wire.body(request)
            assert body == self.wire().body(request), "a cache changes nothing"
            bodies.append(self.unmarked(body))
        for shorter, longer in pairwise(bodies):
            assert longer.startswith(shorter.removesuffix(self.end))

    @inherited
    @given(st.data())
    def test_attachments_are_sent_at_their_places(self, data: st.DataObject) -> None:
        kinds = sorted(self.wire().attachments)
        placed = st.tuples(st.sampled_from(kinds), st.integers(0, 12))
        said = data.draw(st.text(string.ascii_letters, max_size=12))
        files = [_attachment(*one) for one in data.draw(st.lists(placed, min_size=1, max_size=3))]
        sender = data.draw(st.none() | st.just("Ada"))
        message = UserMessage(text=said, sender=sender, attachments=tuple(files))
        media = {one.path: b64encode(SAMPLES[one.media_type]) for one in files}
        body = self.wire().body(replace(request_to(self.choice(), message), media=media))
        self.check(body)
        place = 0
        for part in message.parts:
            sent = part.encode() if isinstance(part, str) else media[part.path]
            place = body.index(sent, place) + len(sent)

    def test_every_kind_of_file_is_sent_as_the_vendor_wants_it(self) -> None:
        assert "image" in self.wire().attachments
        for media_type, content in SAMPLES.items():
            kind = _kind(media_type)
            if kind not in self.wire().attachments:
                continue
            file = Attachment(kind=kind, path="a", media_type=media_type, detail="low")
            message = UserMessage(text="Look.", attachments=(file,))
            media = {"a": b64encode(content)}
            body = self.wire().body(replace(request_to(self.choice(), message), media=media))
            self.check(body)
            assert media["a"] in body

    def test_every_call_is_paired_with_its_result(self) -> None:
        said = (UserMessage(text="hi"), AssistantMessage(calls=CALLS), *RESULTS)
        body = self.wire().body(request_to(self.choice(), *said))
        for call, result in zip(CALLS, RESULTS, strict=True):
            assert body.count(b'"%b"' % call.id.encode()) == 2
            assert result.text.encode() in body

    def test_all_instructions_are_sent(self) -> None:
        body = self.wire().body(replace(request_to(self.choice()), ephemeral="only today"))
        assert b"be brief" in body
        assert b"only today" in body

    def test_the_key_is_sent_in_a_header_and_nowhere_else(self) -> None:
        wire, choice = self.wire(), self.choice()
        keyless = replace(choice, api_key="")
        assert any(PROVIDER_KEY in value for value in wire.headers(choice).values())
        assert set(wire.headers(keyless)) < set(wire.headers(choice))
        assert PROVIDER_KEY.encode() not in wire.body(request_to(choice))
        for url in (wire.url(choice), wire.list_url(choice)):
            assert PROVIDER_KEY not in url

    def test_addresses_begin_with_the_base_url(self) -> None:
        wire, base_url = self.wire(), "http://127.0.0.1:9/v1"
        plain, slashed = self.choice(base_url), self.choice(f"{base_url}/")
        for url in (wire.url, wire.list_url):
            assert url(plain).startswith(f"{base_url}/")
            assert url(slashed) == url(plain)

    def test_the_extra_fields_of_a_provider_are_sent(self) -> None:
        quirks = Quirks(extra_body='{"x_extra":{"deep":true}}')
        body = self.wire().body(request_to(replace(self.choice(), quirks=quirks)))
        assert msgspec.json.decode(body)["x_extra"] == {"deep": True}

    @pytest.mark.parametrize("reasoning", ["budget", "effort"])
    @pytest.mark.parametrize(
        "sampling", SAMPLINGS, ids=lambda one: "+".join(sorted(given_options(one)))
    )
    def test_an_option_reaches_the_model_or_is_known_to_be_left_out(
        self, sampling: Sampling, reasoning: Literal["budget", "effort"]
    ) -> None:
        choice = replace(self.choice(), quirks=Quirks(reasoning=reasoning))
        request = request_to(choice)
        whole = self.wire().body(replace(request, sampling=sampling))
        left_out = self.wire().ignored_options(choice, sampling)
        for name in given_options(sampling):
            unset = replace(sampling, **{name: getattr(Sampling(), name)})
            without = self.wire().body(replace(request, sampling=unset))
            assert (whole == without) == (name in left_out), name

    def test_the_whole_text_is_emitted_and_returned(self) -> None:
        message, events = read(self.wire(), self.recorded_text())
        assert message.text == TEXT
        assert [event for event in events if isinstance(event, TextDelta)] == [TextDelta(text=TEXT)]
        assert events[-1] == SegmentEnded()

    def test_tool_calls_get_ids_of_hermes(self) -> None:
        assert read(self.wire(), self.recorded_calls())[0].calls == CALLS

    def test_the_calls_of_an_answer_that_was_cut_off_are_marked(self) -> None:
        cut, _ = read(self.wire(), self.recorded_cut())
        assert cut.cut == "length"
        assert cut.calls == tuple(replace(call, cut=True) for call in CALLS)
        assert read(self.wire(), self.recorded_text())[0].cut == ""

    def test_a_stream_can_arrive_byte_by_byte(self) -> None:
        for path in self.recordings():
            stream = path.read_bytes()
            single = [bytes([byte]) for byte in stream]
            assert self._heard(*single) == self._heard(stream), path.stem

    @inherited
    @given(st.data(), st.lists(st.integers(0, 3000)))
    def test_a_stream_has_the_same_meaning_in_any_pieces(
        self, data: st.DataObject, cuts: list[int]
    ) -> None:
        stream = data.draw(st.sampled_from(self.recordings())).read_bytes()
        edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
        pieces = [stream[start:stop] for start, stop in pairwise(edges)]
        assert self._heard(*pieces) == self._heard(stream)

    def test_a_stream_that_ends_anywhere_gives_the_whole_message_or_none(self) -> None:
        for path in self.recordings():
            stream = path.read_bytes()
            whole, _ = read(self.wire(), stream)
            given_up = 0
            for size in range(len(stream)):
                cut = self._stream()
                cut.feed(stream[:size])
                try:
                    if not cut.answer.finished:
                        cut.end()
                    assert cut.answer.message("t_1") == whole, path.stem
                except Disconnected:
                    given_up += 1
            assert given_up > len(stream) // 2, path.stem

    @settings(inherited, max_examples=150)
    @given(st.data(), wrongs, st.integers(0, 40), st.integers(0, 40))
    def test_any_response_becomes_an_answer_or_one_of_our_errors(
        self, data: st.DataObject, wrong: object, line: int, at: int
    ) -> None:
        stream = data.draw(st.sampled_from(self.recordings())).read_bytes()
        lines = [line[5:] for line in stream.splitlines() if line.startswith(b"data:")]
        payloads = [json.loads(one) for one in lines if one.strip() != b"[DONE]"]
        index = line % len(payloads)
        payloads[index], _ = _spoiled(payloads[index], wrong, at)
        with suppress(HermesError):
            spoiled = self._stream()
            spoiled.take([json.dumps(one).encode() for one in payloads])
            spoiled.answer.message("t_1")

    def test_an_error_ends_an_answer_that_is_not_complete(self) -> None:
        stream, error = self.recorded_text(), b"data: " + self.error + b"\n\n"
        begun = stream[: stream.index(b" Gott")].rpartition(b"data:")[0]
        with pytest.raises(RateLimited, match="slow down"):
            read(self.wire(), begun + error)
        assert read(self.wire(), stream + error)[0].text == TEXT

    async def test_an_answer_is_streamed_from_the_right_address(self) -> None:
        heads: list[bytes] = []
        async with answering(STREAM + self.recorded_text(), heads) as base_url:
            choice = self.choice(base_url)
            message, events = await self._ask(choice)
        assert message.text == TEXT
        assert "".join(one.text for one in events if isinstance(one, TextDelta)) == TEXT
        path = self.wire().url(choice).removeprefix(base_url.removesuffix("/v1"))
        assert heads[0].startswith(f"post {path} ".lower().encode())
        for name, value in self.wire().headers(choice).items():
            assert f"\r\n{name}: {value}\r\n".lower().encode() in heads[0]

    async def test_a_stream_that_ends_early_counts_as_a_lost_connection(self) -> None:
        stream = self.recorded_text()
        half = stream[: len(stream) // 2]
        for cut in (b"", half, half.rpartition(b"data:")[0]):
            assert isinstance(await self._failure(STREAM + cut), Disconnected)

    async def test_a_lost_connection_after_the_end_of_the_answer_does_no_harm(self) -> None:
        text = self.recorded_text() + b"data: 7\n\n"
        chunked = STREAM.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n")
        never_ended = chunked + b"%x\r\n%b\r\n" % (len(text), text)
        async with answering(never_ended) as base_url:
            message, events = await self._ask(self.choice(base_url))
        assert message.text == TEXT
        assert events[-1] == SegmentEnded()

    async def test_an_invalid_stream_counts_as_a_lost_connection(self) -> None:
        for garbage in GARBAGE:
            failure = await self._failure(STREAM + b"data: " + garbage)
            assert isinstance(failure, Disconnected)
            assert isinstance(await self._failure(json_response(garbage)), Disconnected)

    async def test_a_line_without_end_is_refused(self) -> None:
        assert isinstance(await self._failure(STREAM + b"data: " + b"x" * (5 << 20)), Rejected)

    async def test_an_error_instead_of_an_answer_is_raised(self) -> None:
        assert isinstance(await self._failure(json_response(self.error)), RateLimited)

    async def test_cancelling_closes_the_connection_at_once(self) -> None:
        spoke, hung_up = anyio.Event(), anyio.Event()
        begun, _, _ = self.recorded_text().partition(b" Gott")

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(STREAM + begun)
            while await reader.read(1 << 16):
                pass
            hung_up.set()
            writer.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server, aiohttp.ClientSession() as session:
            client = ModelClient(session, {self.wire().name: self.wire()})
            async with anyio.create_task_group() as turn:
                request = request_to(self.choice(base_url))
                turn.start_soon(client.complete, request, lambda _event: spoke.set())
                await spoke.wait()
                turn.cancel_scope.cancel()
            with anyio.fail_after(5):
                await hung_up.wait()

    def _echoes(self) -> st.SearchStrategy[Echo | None]:
        choice = self.choice()
        return st.none() | st.builds(
            lambda model, text: Echo(wire=choice.wire, model=model, body=self.echo(text)),
            st.sampled_from([choice.model, "other"]),
            texts,
        )

    def _stream(self) -> PayloadStream:
        answer = StreamedAnswer(self.choice(), lambda _event: None)
        return PayloadStream(answer, self.wire().parser(answer))

    def _heard(self, *pieces: bytes) -> tuple[AssistantMessage, str, list[AgentEvent]]:
        """Parses the stream. Returns three values: the message, one string with the text and the
        reasoning in the order of the events, and the list of all other events."""
        message, events = read(self.wire(), *pieces)
        deltas = [one for one in events if isinstance(one, TextDelta | ReasoningDelta)]
        rest = [one for one in events if one not in deltas]
        return message, "".join(one.text for one in deltas), rest

    async def _ask(
        self, choice: ModelChoice, *said: Message
    ) -> tuple[AssistantMessage, list[AgentEvent]]:
        events: list[AgentEvent] = []
        async with aiohttp.ClientSession() as session:
            client = ModelClient(session, {choice.wire: self.wire()})
            return await client.complete(request_to(choice, *said), events.append), events

    async def _failure(self, response: bytes) -> HermesError:
        """Returns the error that a response causes. Fails if the error does not name the provider,
        or if the error contains the API key."""
        async with answering(response) as base_url:
            with pytest.raises(HermesError) as caught:
                await self._ask(self.choice(base_url))
        assert PROVIDER_KEY not in str(caught.value)
        assert "acme" in str(caught.value)
        return caught.value


def _kind(media_type: str) -> AttachmentKind:
    kinds: dict[str, AttachmentKind] = {"image": "image", "audio": "audio"}
    return kinds.get(media_type.partition("/")[0], "file")


def _attachment(kind: AttachmentKind, at: int) -> Attachment:
    media_type = next(one for one in SAMPLES if _kind(one) == kind)
    return Attachment(kind=kind, path=kind, media_type=media_type, at=at)


def _spoiled(value: object, wrong: object, at: int) -> tuple[object, int]:
    """Replaces one part of the JSON `value` by `wrong`. The parts are numbered depth-first, and
    `at` is the number of the part. Returns the JSON, and the number of parts that must still be
    skipped. This number is negative if a part was replaced. Otherwise `value` has too few parts and
    is returned unchanged."""
    if at == 0:
        return wrong, -1
    at -= 1
    if isinstance(value, dict):
        fields = {}
        for name, part in value.items():
            fields[name], at = _spoiled(part, wrong, at)
        return fields, at
    if isinstance(value, list):
        parts = []
        for part in value:
            found, at = _spoiled(part, wrong, at)
            parts.append(found)
        return parts, at
    return value, at
