"""Records what a conversation has shown the model: files, addresses and untrusted content."""

import posixpath
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

import msgspec

from hermes.core.danger.detector import judge
from hermes.types.identity import CallId
from hermes.types.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from hermes.types.turns import Turn

FILE_TOOLS = ("read_file", "write_file", "patch")
"""Tools that read or write a file. After a call of such a tool, the model knows the content of the
file."""
COMMAND_TOOL = "terminal"
"""The tool that runs shell commands. Its results may contain text from the network."""
UNTRUSTED_TRIGGERS = ("webhook", "a2a", "hook")
"""In turns with these triggers, the first message was not written by a person who talks to the
agent."""


class _FileCall(msgspec.Struct):
    path: str


class _CommandCall(msgspec.Struct):
    command: str


class ConversationRecord:
    """The tool calls of a conversation with their results, from the beginning of its history."""

    def __init__(self, turn: Turn, untrusted: Collection[str]) -> None:
        """`untrusted` contains the names of the tools that return texts of other people, such as
        web pages."""
        self._untrusted = untrusted
        self._workspace = turn.profile.workspace
        self._turn = turn
        self._files: set[str] | None = None
        """The files whose content the model knows; None until they are needed."""
        self._new: list[tuple[ToolCall, ToolMessage]] = []
        """Tool calls that ended since the turn was started or resumed, with their results."""
        self._tainted: bool | None = None

    def add(self, call: ToolCall, result: ToolMessage) -> None:
        """Adds a call that has just ended."""
        self._new.append((call, result))
        self._files = self._tainted = None

    @property
    def tainted(self) -> bool:
        """Whether the model has seen content that strangers may have written: web pages, received
        files, or an event, such as a webhook, that opened the turn."""
        if self._tainted is None:
            self._tainted = self._turn.trigger in UNTRUSTED_TRIGGERS or self._has_untrusted()
        return self._tainted

    def knows_file(self, path: str) -> bool:
        if self._files is None:
            self._files = {
                self._normal(known)
                for call, result in self._ended()
                if call.name in FILE_TOOLS and not result.failed and (known := _path_of(call))
            }
        return self._normal(path) in self._files

    def was_mentioned(self, text: str) -> bool:
        """Returns whether the text is in a message of a person, or in the result of a tool that
        returns texts of other people, such as web pages. Other results do not count, because the
        model can make a tool print any text."""
        people = (one for one in self._turn.history if isinstance(one, UserMessage))
        return any(text in one.text for one in people if not one.summary) or any(
            call.name in self._untrusted
            and text in result.text
            and text not in _decoded(call.arguments)
            for call, result in self._ended()
        )

    def _has_untrusted(self) -> bool:
        # A summary may repeat the content of a web page without saying so. So a summary counts as
        # untrusted if the messages that it replaces were untrusted.
        return any(
            isinstance(one, UserMessage) and (one.attachments or (one.summary and not one.trusted))
            for one in self._turn.history
        ) or any(
            call.name in self._untrusted
            or (call.name == COMMAND_TOOL and _downloads(call.arguments))
            for call, _ in self._ended()
        )

    def _ended(self) -> list[tuple[ToolCall, ToolMessage]]:
        return [*_ended_calls(self._turn.history), *self._new]

    def _normal(self, path: str) -> str:
        """Returns the path relative to the workspace, so that all spellings of a path are equal."""
        return posixpath.relpath(
            posixpath.join(self._workspace or "/", path), self._workspace or "/"
        )


def _ended_calls(history: Sequence[Message]) -> list[tuple[ToolCall, ToolMessage]]:
    made: Mapping[CallId, ToolCall] = {
        call.id: call for one in history if isinstance(one, AssistantMessage) for call in one.calls
    }
    results = (one for one in history if isinstance(one, ToolMessage))
    return [(made[one.call], one) for one in results if one.call in made]


@lru_cache(maxsize=1024)
def _downloads(arguments: str) -> bool:
    """Returns whether the output of a command may contain text from the network."""
    try:
        command = msgspec.json.decode(arguments, type=_CommandCall).command
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return judge(command).downloads


def _decoded(arguments: str) -> str:
    """Returns the arguments with JSON escapes decoded, so that all spellings of a text are
    equal."""
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments)).decode()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return arguments


def _path_of(call: ToolCall) -> str:
    try:
        return msgspec.json.decode(call.arguments, type=_FileCall).path
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ""
