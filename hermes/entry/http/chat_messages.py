"""Reads the messages of a chat completion request: history, new messages, results of tools."""

from collections.abc import Sequence
from typing import TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from hermes.entry.http.client_tools import check_name
from hermes.entry.http.content_parts import (
    NOTHING_ATTACHED,
    Attached,
    ContentPart,
    MessageContent,
    text_of,
    user_message,
)
from hermes.entry.http.errors import bad_request
from hermes.types.identity import CallId, parse_call_id
from hermes.types.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from hermes.types.value import Value

LONGEST_NAME = 64
"""Maximum number of characters of a participant's name."""

Numbered: TypeAlias = tuple[int, Message]
"""A message with its index in the request."""


class CalledFunction(msgspec.Struct):
    name: str
    """The tool that was called."""
    arguments: str = ""
    """The arguments as JSON."""


class RequestCall(msgspec.Struct):
    id: str
    """The id of the call, as in the response."""
    type: str = "function"
    """Always `function`."""
    function: CalledFunction | None = None
    """The name of the called tool, and its arguments."""


class RequestMessage(msgspec.Struct):
    role: str
    """The role of the sender: `system`, `developer`, `user`, `assistant` or `tool`. A message with
    the role `function` is ignored."""
    content: MessageContent = None
    """The text of the message, or a list of parts."""
    tool_calls: list[RequestCall] | None = None
    """Calls that an assistant message made; send them back unchanged."""
    tool_call_id: str | None = None
    """The id of the call that a `tool` message answers."""
    name: str | None = None
    """The name of the person who speaks, for `user` messages only. The model sees this name."""
    refusal: str | None = None
    """The text with which the assistant refused to answer."""
    function_call: Raw | UnsetType = UNSET
    """Ignored; use `tool_calls`."""
    audio: Raw | UnsetType = UNSET
    """Ignored."""


class ReadMessages(Value):
    """The `messages` of a request, as the gateway has read them."""

    messages: tuple[Message, ...]
    """The messages for the turn. Without a session, these are the whole history. In a session, they
    are the new messages. If `results` is not empty, they are the messages after the results."""
    results: tuple[ToolMessage, ...] = ()
    """Results of client tools that a turn of this gateway has called. They resume this turn."""


def attached_contents(
    given: Sequence[RequestMessage], *, in_session: bool
) -> dict[int, list[ContentPart]]:
    """Returns the contents of the user messages that may have attachments, by the index of the
    message. In a session, and if tool results resume a turn, the messages up to the last assistant
    message are already stored. So they are skipped."""
    contents = {
        index: one.content
        for index, one in enumerate(given)
        if one.role == "user" and isinstance(one.content, list)
    }
    if not contents:
        return contents
    spoke = (
        index
        for index, one in enumerate(given)
        if one.role == "assistant" and (text_of(one.content, index) or one.tool_calls)
    )
    last = max(spoke, default=-1)
    news = given[last + 1 :]
    resumes = any(one.role == "tool" and parse_call_id(one.tool_call_id or "") for one in news)
    first = last + 1 if in_session or resumes else 0
    return {index: content for index, content in contents.items() if index >= first}


def read_messages(
    given: Sequence[RequestMessage], *, in_session: bool, attached: Attached = NOTHING_ATTACHED
) -> ReadMessages:
    """Reads the conversation of a request. If a message is wrong, raises an ApiError that names it.

    Tool results resume a turn if they answer calls of this gateway, and if no assistant message
    comes after them. All other calls and results are plain history.
    """
    said = _said(given, attached)
    last = max((at for at, (_, one) in enumerate(said) if _spoke(one)), default=-1)
    news = said[last + 1 :]
    if results := _results(news):
        after = tuple(one for _, one in news if isinstance(one, UserMessage))
        return ReadMessages(messages=after, results=results)
    if not in_session:
        if not any(isinstance(one, UserMessage) for _, one in said):
            raise bad_request("No user message found in messages.", param="messages")
        return ReadMessages(messages=_paired(said))
    if news and isinstance(news[0][1], ToolMessage):
        # These results answer calls that no turn of this gateway has made. So the message with the
        # calls is included, because the model has to see the calls together with the results.
        news = said[max(last, 0) :]
    if not news:
        raise bad_request("The last message must be the user's.", param="messages")
    return ReadMessages(messages=_paired(news))


def instructions_of(given: Sequence[RequestMessage]) -> str:
    """Returns the texts of the system messages. They apply to one turn only."""
    texts = [
        text_of(message.content, index)
        for index, message in enumerate(given)
        if message.role in ("system", "developer")
    ]
    return "\n".join(texts)


def _spoke(message: Message) -> bool:
    return isinstance(message, AssistantMessage)


def _said(given: Sequence[RequestMessage], attached: Attached) -> list[Numbered]:
    """Returns the messages of people, of the assistant and of tools, each with its index. System
    messages are left out."""
    found: list[Numbered] = []
    for index, message in enumerate(given):
        match message.role:
            case "user":
                said = user_message(message.content, index, attached)
                found.append((index, msgspec.structs.replace(said, sender=_sender(message, index))))
            case "assistant":
                text = text_of(message.content, index) or message.refusal or ""
                calls = _calls(message, index)
                if text or calls:
                    found.append((index, AssistantMessage(text=text, calls=calls)))
            case "tool":
                if not message.tool_call_id:
                    param = f"messages[{index}].tool_call_id"
                    raise bad_request("A tool message needs a tool_call_id.", param=param)
                call = CallId(message.tool_call_id)
                found.append((index, ToolMessage(call=call, text=text_of(message.content, index))))
            case "system" | "developer" | "function":
                pass
            case other:
                param = f"messages[{index}].role"
                roles = "'user', 'assistant', 'system', 'developer' or 'tool'"
                text = f"There is no role {other!r}: use {roles}."
                raise bad_request(text, "invalid_role", param)
    return found


def _calls(message: RequestMessage, index: int) -> tuple[ToolCall, ...]:
    calls = []
    for number, call in enumerate(message.tool_calls or ()):
        param = f"messages[{index}].tool_calls[{number}]"
        if call.type != "function" or call.function is None:
            message_text = f"Tool calls of type {call.type!r} are not supported; send functions."
            raise bad_request(message_text, "unsupported_tool_type", param)
        check_name(call.function.name, f"{param}.function.name")
        name, arguments = call.function.name, call.function.arguments
        calls.append(ToolCall(id=CallId(call.id), name=name, arguments=arguments))
    return tuple(calls)


def _results(news: Sequence[Numbered]) -> tuple[ToolMessage, ...]:
    """Returns the tool results among the new messages if they resume a turn of this gateway;
    otherwise returns an empty tuple."""
    results = [(index, one) for index, one in news if isinstance(one, ToolMessage)]
    places = [parse_call_id(one.call) for _, one in results]
    if not any(places):
        return ()
    steps = {(place.turn, place.step) if place else None for place in places}
    if len(steps) > 1:
        message = "The tool results answer calls of different steps: send those of the last step."
        raise bad_request(message, "mixed_tool_results", "messages")
    seen: set[CallId] = set()
    for index, one in results:
        if one.call in seen:
            raise bad_request(
                f"The tool call {one.call!r} has two results.",
                "repeated_tool_result",
                f"messages[{index}].tool_call_id",
            )
        seen.add(one.call)
    return tuple(one for _, one in results)


def _paired(said: Sequence[Numbered]) -> tuple[Message, ...]:
    """Returns the messages of a history, with call ids that every provider accepts.

    Raises an ApiError if a call has no result or a result has no call, because no provider
    accepts that.
    """
    found: list[Message] = []
    open_calls: dict[CallId, CallId] = {}
    count = 0
    for index, message in said:
        match message:
            case ToolMessage(call=call):
                if call not in open_calls:
                    raise bad_request(
                        f"The result of {call[:80]!r} does not follow its call: send each result"
                        " once, after the message with its call.",
                        "unknown_tool_call",
                        f"messages[{index}].tool_call_id",
                    )
                renamed = open_calls.pop(call)
                found.append(msgspec.structs.replace(message, call=renamed))
            case AssistantMessage(calls=calls):
                _need_results(open_calls, index)
                made = []
                for one in calls:
                    if one.id in open_calls:
                        raise bad_request(
                            f"Two tool calls have the id {one.id[:80]!r}.",
                            "repeated_tool_call",
                            f"messages[{index}].tool_calls",
                        )
                    renamed = open_calls[one.id] = CallId(f"history_{count}")
                    made.append(msgspec.structs.replace(one, id=renamed))
                    count += 1
                found.append(msgspec.structs.replace(message, calls=tuple(made)))
            case _:
                _need_results(open_calls, index)
                found.append(message)
    _need_results(open_calls, len(said))
    return tuple(found)


def _need_results(open_calls: dict[CallId, CallId], index: int) -> None:
    if open_calls:
        named = ", ".join(repr(call[:80]) for call in open_calls)
        message = f"The results of these tool calls are missing: {named}."
        raise bad_request(message, "missing_tool_results", f"messages[{index}]")


def _sender(message: RequestMessage, index: int) -> str | None:
    """Returns the name of the person who wrote the message, or None if the message has no name.
    Raises ApiError if the name is too long or not printable."""
    name = message.name
    if name and (len(name) > LONGEST_NAME or not name.isprintable()):
        limit = f"at most {LONGEST_NAME} printable characters"
        raise bad_request(f"A name has {limit}.", param=f"messages[{index}].name")
    return name or None
