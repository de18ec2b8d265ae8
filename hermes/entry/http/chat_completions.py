"""POST /v1/chat/completions: one turn, whole or as it is said."""

import time
from collections.abc import Sequence

from starlette.requests import Request

from hermes.control.following import Following
from hermes.control.gateway import Gateway
from hermes.entry.http.call import Call
from hermes.entry.http.chat_request import ChatRequest, fingerprint, parse_chat
from hermes.entry.http.errors import ApiError, bad_request, failed_turn
from hermes.entry.http.models import Models
from hermes.entry.http.reply import Reply
from hermes.entry.http.sse import Reader, SSEStream, next_or_keepalive
from hermes.streaming.fold import Folder, View
from hermes.streaming.sse import ChatStream, plain_completion
from hermes.types.events import Envelope, TextDelta, TurnFinished
from hermes.types.identity import Source, TurnId, new_id
from hermes.types.messages import Accepted, Asked, Duplicate, MessageEvent, Origin, Receipt, Refused

HEADER = 256
"""Characters of an id in a header."""
EARLY_SECONDS = 2.0
"""How long a stream waits for its first event, so that a failure can still be a status."""
UNFINISHED = TurnFinished(
    outcome="failed",
    text="The gateway is restarting; the run goes on then. Read its events, or ask again.",
    code="gateway_restarting",
    status=503,
    retry_after=1.0,
)


class ChatCompletions:
    def __init__(self, gateway: Gateway, models: Models) -> None:
        self._gateway = gateway
        self._models = models

    async def __call__(self, call: Call) -> Reply | None:
        asked = parse_chat(call.body)
        event = to_event(call, asked, self._models.override(asked.model))
        receipt = await self._accept(event)
        turn = TurnId(_turn_of(receipt))
        headers = {"x-hermes-run-id": f"run_{turn}"}
        if session := call.request.headers.get("x-hermes-session-id"):
            headers["x-hermes-session-id"] = session
        if ignored := asked.ignored():
            headers["x-hermes-ignored"] = ", ".join(ignored)
        after = 0
        if isinstance(receipt, Accepted):
            after = receipt.after
            if receipt.reply is not None:
                return await _say(call, asked, turn, receipt.reply, headers)
        with self._gateway.following(turn, after) as following:
            if asked.stream:
                await stream(call, asked, following, turn, headers)
                return None
            return await whole(following, asked, turn, headers)

    async def _accept(self, event: MessageEvent) -> Receipt:
        receipt = await self._gateway.accept(event)
        if isinstance(receipt, Refused):
            raise ApiError(403, f"Not accepted: {receipt.reason}.", "refused")
        if isinstance(receipt, Duplicate) and not receipt.same:
            message = "This Idempotency-Key was used for another request."
            raise ApiError(409, message, "idempotency_key_conflict")
        return receipt


def _turn_of(receipt: Receipt) -> str:
    assert not isinstance(receipt, Refused)
    return receipt.turn or receipt.id


def to_event(call: Call, asked: ChatRequest, override: str | None) -> MessageEvent:
    """The request as a message: of a stored session by header, of its own otherwise."""
    request, principal = call.request, call.principal
    session = _header(request, "x-hermes-session-id")
    key = _header(request, "idempotency-key")
    source = Source(
        platform="api",
        account=principal.name,
        chat_kind="private",
        # A stateless request is a lane of its own: nothing else may ever have its key.
        chat_id=session if session else f"request/{new_id()}",
        user_id=principal.name,
    )
    unique = f"key:{key}" if key else f"request:{new_id()}"
    return MessageEvent(
        dedupe_key=f"api:{principal.name}:{unique}",
        fingerprint=fingerprint(call.body) if key else "",
        source=source,
        origin=Origin(trigger="api", principal=principal),
        received_at=time.time(),
        body=Asked(
            messages=tuple(asked.news() if session else asked.conversation()),
            instructions=asked.instructions(),
            model=override,
            sampling=asked.sampling(),
            stateless=not session,
            detached=bool(session or key),
            live=bool(asked.stream),
        ),
    )


def _header(request: Request, name: str) -> str:
    values = request.headers.getlist(name)
    if not values:
        return ""
    value = values[0]
    if len(values) > 1 or len(value) > HEADER or not value.isprintable() or not value.strip():
        raise bad_request(
            f"{name} must be one value of 1 to {HEADER} printable characters.",
            "invalid_header",
            name,
        )
    return value


async def whole(
    following: Following, asked: ChatRequest, turn: TurnId, headers: dict[str, str]
) -> Reply:
    """The answer in one piece, once it is committed."""
    folder = Folder()
    for envelope in await following.rest():
        folder.feed(envelope.seq, envelope.event)
    view = folder.view()
    finish = view.outcome or UNFINISHED
    if finish.outcome == "failed":
        raise failed_turn(finish)
    return _completion(asked, turn, view, headers)


def _completion(asked: ChatRequest, turn: TurnId, view: View, headers: dict[str, str]) -> Reply:
    body = plain_completion(f"chatcmpl-{turn}", asked.model or "main", int(time.time()), view)
    return Reply(body, headers=headers)


async def _say(
    call: Call, asked: ChatRequest, turn: TurnId, reply: str, headers: dict[str, str]
) -> Reply | None:
    """A command's reply, in the form of an answer."""
    view = View(segments=(reply,), outcome=TurnFinished(outcome="completed"))
    if not asked.stream:
        return _completion(asked, turn, view, headers)
    await stream(call, asked, Told(turn, reply), turn, headers)
    return None


async def stream(
    call: Call,
    asked: ChatRequest,
    reader: Reader,
    turn: TurnId,
    headers: dict[str, str],
) -> None:
    """The answer as it is said. A turn that fails before its first word is an error status."""
    options = asked.stream_options
    usage = options is not None and options.include_usage
    chat = ChatStream(f"chatcmpl-{turn}", asked.model or "main", int(time.time()), usage)
    events = await reader.next(EARLY_SECONDS)
    first = events[0].event if events else None
    if isinstance(first, TurnFinished) and first.outcome == "failed":
        raise failed_turn(first)
    out = SSEStream(call)
    await out.start(headers)
    frames = [chat.open()]
    while True:
        frames += [chat.feed(one.seq, one.event) for one in events]
        if reader.ended and chat.end is None:
            frames.append(chat.feed(0, UNFINISHED))
        if sent := b"".join(frames):
            await out.send(sent)
        if chat.end is not None:
            break
        events = await next_or_keepalive(reader, out)
        frames.clear()
    await out.finish()


class Told:
    """A reader of something that was said at once."""

    ended = True

    def __init__(self, turn: TurnId, text: str) -> None:
        self._turn = turn
        self._text = text

    async def gather(self, seconds: float) -> None:
        pass

    async def next(self, within: float = 0) -> Sequence[Envelope]:
        return [
            Envelope(turn=self._turn, seq=1, event=TextDelta(text=self._text)),
            Envelope(turn=self._turn, seq=2, event=TurnFinished(outcome="completed")),
        ]
