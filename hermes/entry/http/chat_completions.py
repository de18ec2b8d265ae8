"""POST /v1/chat/completions: runs one turn, and returns or streams its answer."""

import time
from functools import partial
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.types import ASGIApp

from hermes.control.following import Following
from hermes.control.gateway import Gateway
from hermes.entry.http.auth import principal_of
from hermes.entry.http.chat_messages import (
    ReadMessages,
    attached_contents,
    instructions_of,
    read_messages,
)
from hermes.entry.http.chat_request import (
    ChatCompletionRequest,
    fingerprint,
    parse_chat,
    unknown_fields,
)
from hermes.entry.http.client_tools import client_tools, tool_choice
from hermes.entry.http.content_parts import collect
from hermes.entry.http.endpoint import body_of
from hermes.entry.http.errors import ApiError, bad_request, failed_turn, stopped_turn
from hermes.entry.http.ignored import IgnoredOptions, ignored_header
from hermes.entry.http.long_answers import AnswerPlace, LongJsonResponse
from hermes.entry.http.models import Models
from hermes.entry.http.response_format import response_format
from hermes.entry.http.responses import JsonResponse
from hermes.entry.http.sse import EventStream, EventStreamResponse, next_or_keepalive
from hermes.streaming.final import answer_with_questions
from hermes.streaming.fold import View
from hermes.streaming.plain import PlainAnswer, around_answer
from hermes.streaming.sse import ChatStream, plain_completion
from hermes.types.events import AgentEvent, TextDelta, TurnFinished
from hermes.types.identity import Source, TurnId, new_id, parse_call_id
from hermes.types.messages import (
    Accepted,
    Asked,
    ClientKey,
    Duplicate,
    MessageEvent,
    Origin,
    Receipt,
    Refused,
    ResponseFormat,
    Sampling,
)

HEADER = 256
"""Maximum number of characters of an id in a header."""
EARLY_SECONDS = 2.0
"""Seconds that a stream waits for its first event before it sends the status 200. If the turn fails
within this time, the client gets an error status."""
UNFINISHED = TurnFinished(
    outcome="failed",
    text="The gateway is restarting; the run continues afterwards. Read its events, or ask again.",
    code="gateway_restarting",
    status=503,
    retry_after=1.0,
)
COMPLETED = TurnFinished(outcome="completed")
PLAIN_SAMPLING = Sampling()


class ChatCompletions:
    def __init__(self, gateway: Gateway, models: Models, ignored_options: IgnoredOptions) -> None:
        self._gateway = gateway
        self._models = models
        self._ignored_options = ignored_options

    async def __call__(self, request: Request) -> ASGIApp:
        body = await body_of(request)
        asked = parse_chat(body)
        model, session = self._models.requested(asked.model), _session(request)
        contents = attached_contents(asked.messages, in_session=bool(session))
        attached = await collect(self._gateway.media, contents, stateless=not session)
        said = read_messages(asked.messages, in_session=bool(session), attached=attached)
        form = await response_format(asked.response_format)
        sampling = asked.sampling()
        event = to_event(request, body, session, asked, model.override, said, sampling, form)
        receipt = await self._accept(event)
        turn = TurnId(receipt.turn or receipt.id)
        headers = {"x-hermes-run-id": f"run_{turn}"}
        if session:
            headers["x-hermes-session-id"] = session
        ignored = ["model"] if model.ignored else []
        if sampling != PLAIN_SAMPLING:
            ignored += sorted(self._ignored_options(model.override, sampling))
        headers |= ignored_header([*ignored, *asked.ignored(), *unknown_fields(asked, body)])
        if asked.stream:
            write = partial(self._write, asked, receipt, turn, headers, form)
            return EventStreamResponse(write)
        complete = partial(plain_completion, f"chatcmpl-{turn}", asked.model or "main", now())
        if (reply := reply_of(receipt)) is not None:
            view = View(segments=(reply,), outcome=COMPLETED)
            return JsonResponse(complete(view), headers=headers)
        answer, view = await self._answer(turn, after(receipt), form, headers)
        if not answer.is_long:
            return JsonResponse(complete(view), headers=headers)
        place = AnswerPlace(after=after(receipt), upto=answer.end, segments=answer.segments())
        open_events = partial(self._gateway.following, turn, after(receipt))
        halves = around_answer(complete(view))
        return LongJsonResponse(*halves, place, open_events, headers)

    async def _accept(self, event: MessageEvent) -> Accepted | Duplicate:
        receipt: Receipt = await self._gateway.accept(event)
        if isinstance(receipt, Refused):
            raise ApiError(403, f"Not accepted: {receipt.reason}.", "refused")
        if isinstance(receipt, Duplicate) and not receipt.same:
            message = "This Idempotency-Key was used for another request or in another session."
            raise ApiError(409, message, "idempotency_key_conflict")
        return receipt

    async def _answer(
        self,
        turn: TurnId,
        after: int,
        form: ResponseFormat | None,
        headers: dict[str, str],
    ) -> tuple[PlainAnswer, View]:
        """Waits until the answer is committed. Returns the whole answer, and a view of the turn
        with its outcome. If there is no answer, raises an error with the headers."""
        answer = PlainAnswer()
        with self._gateway.following(turn, after) as following:
            while not answer.end and not following.ended:
                for one in await following.next_at_rest():
                    answer.feed(one.seq, end_of(one.event, form))
        view = answer.view()
        finish = view.outcome or UNFINISHED
        if finish.outcome == "failed":
            raise failed_turn(finish, headers)
        if finish.outcome == "stopped" and not answer_with_questions(view):
            raise stopped_turn(finish, headers)
        return answer, view

    async def _write(
        self,
        asked: ChatCompletionRequest,
        receipt: Accepted | Duplicate,
        turn: TurnId,
        headers: dict[str, str],
        form: ResponseFormat | None,
        out: EventStream,
    ) -> None:
        options = asked.stream_options
        usage = options is not None and options.include_usage
        chat = ChatStream(f"chatcmpl-{turn}", asked.model or "main", now(), usage)
        if (reply := reply_of(receipt)) is not None:
            await out.start(headers)
            await out.send(chat.open() + chat.feed(1, TextDelta(text=reply)))
            await out.finish(chat.feed(2, COMPLETED))
            return
        with self._gateway.following(turn, after(receipt)) as following:
            await stream(following, chat, headers, form, out)


async def stream(
    following: Following,
    chat: ChatStream,
    headers: dict[str, str],
    form: ResponseFormat | None,
    out: EventStream,
) -> None:
    """Streams the answer. If the turn fails before its first word, sends an error status instead of
    a stream."""
    events = await following.next(EARLY_SECONDS)
    first = events[0].event if events else None
    if isinstance(first, TurnFinished) and first.outcome == "failed":
        raise failed_turn(first, headers)
    if isinstance(first, TurnFinished) and first.outcome == "stopped":
        raise stopped_turn(first, headers)
    await out.start(headers)
    frames = [chat.open()]
    while True:
        frames += [chat.feed(one.seq, end_of(one.event, form)) for one in events]
        if following.ended and chat.end is None:
            frames.append(chat.fail(UNFINISHED))
        if chat.end is not None:
            break
        await out.send(b"".join(frames))
        events = await next_or_keepalive(following, out)
        frames.clear()
    await out.finish(b"".join(frames))


def end_of(event: AgentEvent, form: ResponseFormat | None) -> AgentEvent:
    """Returns the event. If a response format is required and the turn was stopped, returns a
    failure instead, so that the client gets an error."""
    if form is None or not isinstance(event, TurnFinished) or event.outcome != "stopped":
        return event
    why = f"The turn was stopped ({event.text or 'by you'}) before it had a whole answer."
    return TurnFinished(outcome="failed", text=why, code="stopped", status=422)


def reply_of(receipt: Accepted | Duplicate) -> str | None:
    """Returns the reply to a command such as /new, which starts no turn; None if the request has
    started a turn."""
    return receipt.reply if isinstance(receipt, Accepted) else None


def after(receipt: Accepted | Duplicate) -> int:
    """Returns the number of the last event before this request's answer."""
    return receipt.after


def now() -> int:
    return int(time.time())


def to_event(
    request: Request,
    body: bytes,
    session: str,
    asked: ChatCompletionRequest,
    override: str | None,
    said: ReadMessages,
    sampling: Sampling,
    form: ResponseFormat | None,
) -> MessageEvent:
    """Converts the request to a message event in the session `session`. If `session` is empty, the
    event gets a new session that no other request uses."""
    principal = principal_of(request)
    key = _header(request, "idempotency-key")
    tools = client_tools(asked.tools)
    source = Source(
        platform="api",
        account=principal.name,
        chat_kind="private",
        # A stateless request has a lane (a queue of work) of its own, so its session key must be
        # unique.
        chat_id=session if session else f"request-{new_id()}",
        user_id=principal.name,
    )
    unique = f"key:{key}" if key else f"request:{new_id()}"
    mark, client_key = fingerprint(session, body) if key else "", None
    scope = f"api:{quote(principal.name, safe='')}"
    if said.results:
        if key:
            client_key = ClientKey(dedupe_key=f"{scope}:{unique}", fingerprint=mark)
        # The event's dedupe key identifies the step that the results answer. If an SDK sends the
        # results twice, the model answers only once.
        unique, mark = _results_key(said)
    return MessageEvent(
        dedupe_key=f"{scope}:{unique}",
        fingerprint=mark,
        client_key=client_key,
        source=source,
        origin=Origin(trigger="api", principal=principal),
        received_at=time.time(),
        body=Asked(
            messages=said.messages,
            instructions=instructions_of(asked.messages),
            model=override,
            sampling=sampling,
            tools=tools,
            tool_choice=tool_choice(asked.tool_choice, asked.parallel_tool_calls, tools),
            results=said.results,
            response_format=form,
            stateless=not session,
            detached=bool(session or key),
            live=bool(asked.stream),
        ),
    )


def _results_key(said: ReadMessages) -> tuple[str, str]:
    """Returns two values for a request with tool results: a key that identifies the step in which
    the model called the tools, and a fingerprint of the results and of the messages after them."""
    place = parse_call_id(said.results[0].call)
    assert place is not None, "only results for calls of ours are read as results"
    ordered = sorted(said.results, key=lambda result: result.call)
    content = msgspec.json.encode((ordered, said.messages))
    return f"results:{place.turn}_{place.step}", fingerprint("", content)


def _session(request: Request) -> str:
    """Returns the session that the request names; empty for a stateless request."""
    return _header(request, "x-hermes-session-id")


def _header(request: Request, name: str) -> str:
    wanted = name.encode()
    values = [value for found, value in request.scope["headers"] if found == wanted]
    if not values:
        return ""
    value = str(values[0], "latin-1")
    if len(values) > 1 or len(value) > HEADER or not value.isprintable() or not value.strip():
        raise bad_request(
            f"{name} must be one value of 1 to {HEADER} printable characters.",
            "invalid_header",
            name,
        )
    return value
