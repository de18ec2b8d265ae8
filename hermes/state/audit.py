"""Reads everything that the store knows about one message: its turn, calls and deliveries."""

from typing import TypeVar

import msgspec

from hermes.state import bodies
from hermes.state.codec import decode_message, decode_placed
from hermes.types.messages import AssistantMessage, ToolMessage
from hermes.types.store import Row, Work
from hermes.types.value import Value

ValueT = TypeVar("ValueT", bound=Value)


class AuditedMessage(Value):
    """A message that was accepted."""

    id: str
    dedupe_key: str
    session: str
    agent: str
    person: str | None
    account: str
    chat_id: str
    user_id: str
    state: str
    turn: str | None
    received_at: float


class AuditedTurn(Value):
    """The turn that has answered a message."""

    id: str
    session: str
    agent: str
    person: str | None
    account: str
    chat_id: str
    state: str
    trigger_kind: str
    steps: int
    stop_requested: str | None
    """The person who has stopped the turn; None if nobody has."""
    code: str | None
    reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    started_at: float
    finished_at: float | None


class AuditedDecision(Value):
    """A question about a tool call, and the decision of a person."""

    call: str
    kind: str
    prompt: str
    state: str
    answer: str | None
    decided_by: str | None
    asked_at: float
    decided_at: float | None


class AuditedToolCall(Value):
    """A tool call that the model has made."""

    id: str
    name: str
    arguments: str
    started_at: float | None
    """The time at which the call was marked as started. Only calls that must not run twice are
    marked."""
    finished_at: float | None
    failed: bool | None
    """Whether the call has failed; None if it has no result."""
    decisions: tuple[AuditedDecision, ...]


class AuditedModelCall(Value):
    """A model call that has ended with an answer."""

    step: int
    at: float
    text: str
    calls: tuple[AuditedToolCall, ...]


class AuditedDelivery(Value):
    """A message that the turn has caused Hermes to send to a chat: an answer, a notice, or a
    message of a tool."""

    id: str
    account: str
    chat_id: str
    thread_id: str | None
    state: str
    attempts: int
    error: str | None
    created_at: float
    finished_at: float | None
    receipts: tuple[str, ...]
    """The ids of the messages on the platform."""


class AuditTrail(Value):
    """Everything that is known about a message or a turn."""

    messages: tuple[AuditedMessage, ...]
    """The message that has opened the turn, and the messages that have answered its questions."""
    turn: AuditedTurn | None
    """The turn that has answered the message; None if no turn has answered it, for example because
    the message is a command."""
    model_calls: tuple[AuditedModelCall, ...] = ()
    deliveries: tuple[AuditedDelivery, ...] = ()


def trail(name: str) -> Work[AuditTrail | None]:
    """Returns the trail of a message or a turn; None if there is no such message or turn. `name` is
    the id or the dedupe key of the message, or the id of the turn."""
    fields = ", ".join(AuditedMessage.__struct_fields__)
    found = yield (
        f"select {fields} from inbox where id = ? or dedupe_key = ? order by seq",  # noqa: S608
        (name, name),
    )
    messages = _values(AuditedMessage, found)
    turn = yield from _turn(messages[0].turn or name if messages else name)
    if turn is None:
        return AuditTrail(messages=tuple(messages), turn=None) if messages else None
    found = yield (
        f"select {fields} from inbox where turn = ? order by seq",  # noqa: S608
        (turn.id,),
    )
    return AuditTrail(
        messages=tuple(_values(AuditedMessage, found)),
        turn=turn,
        model_calls=(yield from _model_calls(turn.id)),
        deliveries=(yield from _deliveries(turn.id)),
    )


def _turn(id: str) -> Work[AuditedTurn | None]:
    fields = ", ".join(AuditedTurn.__struct_fields__)
    rows = yield f"select {fields} from turns where id = ?", (id,)  # noqa: S608
    found = _values(AuditedTurn, rows)
    return found[0] if found else None


def _model_calls(turn: str) -> Work[tuple[AuditedModelCall, ...]]:
    rows = yield (
        "select step, at, body, crc, body_name from messages where turn = ? and role <> 'user'"
        " order by step, idx",
        (turn,),
    )
    rows = yield from bodies.filled(rows, 2, 4)
    said: list[tuple[int, float, AssistantMessage]] = []
    results: dict[str, tuple[float, bool]] = {}
    for step, at, body, crc, _ in rows:
        try:
            message = decode_message(body, crc)
        except msgspec.DecodeError:
            message = AssistantMessage(text="(This message can't be read.)")
        match message:
            case AssistantMessage():
                said += [(step, at, message)]
            case ToolMessage(call=call, failed=failed):
                results |= {call: (at, failed)}
            case _:
                pass
    calls = yield from _tool_calls(turn, [message for _, _, message in said], results)
    return tuple(
        AuditedModelCall(
            step=step,
            at=at,
            text=message.text,
            calls=tuple(calls[call.id] for call in message.calls),
        )
        for step, at, message in said
    )


def _tool_calls(
    turn: str, said: list[AssistantMessage], results: dict[str, tuple[float, bool]]
) -> Work[dict[str, AuditedToolCall]]:
    rows = yield "select id, started_at from calls where turn = ?", (turn,)
    started: dict[str, float] = dict(rows)
    fields = ", ".join(AuditedDecision.__struct_fields__)
    rows = yield (
        f"select {fields} from questions where turn = ? order by id",  # noqa: S608
        (turn,),
    )
    decisions = _values(AuditedDecision, rows)
    return {
        call.id: AuditedToolCall(
            id=call.id,
            name=call.name,
            arguments=call.arguments,
            started_at=started.get(call.id),
            finished_at=results[call.id][0] if call.id in results else None,
            failed=results[call.id][1] if call.id in results else None,
            decisions=tuple(one for one in decisions if one.call == call.id),
        )
        for message in said
        for call in message.calls
    }


def _deliveries(turn: str) -> Work[tuple[AuditedDelivery, ...]]:
    names = [name for name in AuditedDelivery.__struct_fields__ if name != "receipts"]
    # The send key of a message from a tool begins with the id of the tool call, and that id begins
    # with the id of the turn. So this prefix finds the messages from the turn's tools.
    prefix = f"{turn}_"
    rows = yield (
        f"select {', '.join(names)}, placed from deliveries where turn = ?"  # noqa: S608
        " or (send_key is not null and substr(send_key, 1, cast(? as integer)) = ?) order by seq",
        (turn, len(prefix), prefix),
    )
    return tuple(
        AuditedDelivery(
            **dict(zip(names, fields, strict=True)),
            receipts=tuple(one.ref.id for one in decode_placed(placed)),
        )
        for *fields, placed in rows
    )


def _values(kind: type[ValueT], rows: list[Row]) -> list[ValueT]:
    names = kind.__struct_fields__
    return [kind(**dict(zip(names, row, strict=True))) for row in rows]
