"""Replaces each unreadable message with a marker, so that the session can continue."""

import logging
from collections.abc import Iterable, Sequence

import msgspec

from hermes.state.codec import decode_message
from hermes.state.compactions import Span
from hermes.types.identity import CallId
from hermes.types.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from hermes.types.store import Row

log = logging.getLogger(__name__)

MESSAGE_COLUMNS = "id, turn, step, idx, body, crc, role, body_name"
"""The first columns of every row that is passed to this module."""
BODY, BODY_NAME = 4, 7
"""The indexes of the columns `body` and `body_name` in the row."""
LOST_MESSAGE = "[This message can't be read: its record in the store is damaged.]"
LOST_RESULT = "[There is no result: the record of this turn in the store is damaged.]"

DecodedRow = tuple[Row, Message | None]
"""A row with its message. The message is None if it can't be read."""


def decoded(rows: Iterable[Row]) -> list[DecodedRow]:
    found: list[DecodedRow] = []
    for row in rows:
        message: Message | None = None
        try:
            message = decode_message(row[BODY], row[5])
        except msgspec.DecodeError as error:
            log.error("message %s of turn %s can't be read: %s", *row[:2], error)
        found.append((row, message))
    return found


def marked(found: Sequence[DecodedRow]) -> list[tuple[Row, Message]]:
    """Returns every row with its message, or with a marker if the message can't be read."""
    # A tool result is stored under the same turn, step and number as its call.
    calls = {
        (row[1], row[2], number): call.id
        for row, message in found
        if isinstance(message, AssistantMessage)
        for number, call in enumerate(message.calls, 1)
    }
    return [
        (row, _marker(row, calls.get(row[1:4], CallId(""))) if message is None else message)
        for row, message in found
    ]


def _marker(row: Row, call: CallId) -> Message:
    match row[6]:
        case "assistant":
            return AssistantMessage(text=LOST_MESSAGE)
        case "tool":
            return ToolMessage(call=call, text=LOST_RESULT, failed=True)
        case _:
            return UserMessage(text=LOST_MESSAGE)


def repaired(found: Sequence[DecodedRow], before: Sequence[Message]) -> list[tuple[Span, Message]]:
    """Returns the messages that follow `before`, each with the rows that it represents.

    No model accepts a call without a result, or a result without a call. If an assistant message
    can't be read, its marker replaces the message and the results of its calls. If a result can't
    be read, its call gets a marker as its result.
    """
    damaged = {row[1] for row, message in found if message is None}
    if not damaged:
        return [((row[0], row[0]), message) for row, message in found if message is not None]
    pairing = _Pairing(before)
    for row, message in marked(found):
        pairing.add(row, message)
    pairing.end(damaged)
    return pairing.messages


class _Pairing:
    """Collects messages so that each tool call gets exactly one result. Adds a result to a call
    without a result, and leaves out a result without a call."""

    def __init__(self, before: Sequence[Message]) -> None:
        self.messages: list[tuple[Span, Message]] = []
        self._open = {call.id: "" for call in _unanswered(before)}
        """The ids of the calls that have no result so far, each with the id of its turn."""

    def add(self, row: Row, message: Message) -> None:
        span = (row[0], row[0])
        if isinstance(message, ToolMessage):
            if self._open.pop(message.call, None) is None:
                self._drop(row[0])
                return
        else:
            self._answer(span)
            if isinstance(message, AssistantMessage):
                self._open = {call.id: row[1] for call in message.calls}
        self.messages.append((span, message))

    def end(self, damaged: set[str]) -> None:
        """Adds a result to each open call that belongs to a damaged turn. Other calls stay open,
        because a running turn or a client will answer them."""
        if self.messages and damaged.intersection(self._open.values()):
            self._answer(self.messages[-1][0])

    def _answer(self, span: Span) -> None:
        for call in self._open:
            result = ToolMessage(call=call, text=LOST_RESULT, failed=True)
            self.messages.append((span, result))
        self._open = {}

    def _drop(self, number: int) -> None:
        """Leaves out a row, and adds its number to the span of the message before it. A summary
        that replaces this message then also replaces the row."""
        if self.messages:
            (first, last), message = self.messages[-1]
            self.messages[-1] = (min(first, number), max(last, number)), message


def _unanswered(messages: Sequence[Message]) -> list[ToolCall]:
    """Returns the calls without a result in the last assistant message."""
    answered: set[CallId] = set()
    for message in reversed(messages):
        match message:
            case ToolMessage(call=call):
                answered.add(call)
            case AssistantMessage(calls=calls):
                return [call for call in calls if call.id not in answered]
            case UserMessage():
                return []
    return []
