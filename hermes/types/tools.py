"""A tool as the model sees it and as the agent runs it."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from hermes.types.identity import CallId
from hermes.types.turns import Decision, Question, Turn
from hermes.types.value import Value


class Process(Value):
    """A process group that a call left running; the start time tells it from a reused pid."""

    group: int
    started: int


class ToolContext(Protocol):
    """What a running tool may know and ask for."""

    @property
    def turn(self) -> Turn: ...
    @property
    def call(self) -> CallId: ...
    @property
    def workspace(self) -> Path: ...
    @property
    def decision(self) -> Decision | None:
        """What a person decided, when the call was suspended on a question."""
        ...

    async def running(self, process: Process) -> None:
        """Commits what this call is about to start, so that a restart can end it."""
        ...

    def progress(self, text: str) -> None: ...

    def hide(self, text: str) -> str:
        """The text without secrets: for who cuts it, because nobody can hide half of one."""
        ...


Handler = Callable[[ToolContext, msgspec.Struct], Awaitable[str]]


class Tool(Value):
    name: str
    description: str
    """For the model; the first line is also for people."""
    arguments: type[msgspec.Struct]
    """The declaration is the JSON schema and the validator."""
    handler: Handler
    read_only: bool = False
    """Changes nothing: calls of one step run side by side."""
    repeatable: bool = False
    """May run again after a crash without doing harm."""
    toolset: str = ""
    """The set it belongs to."""
    risk: Literal["low", "medium", "high"] = "low"
    """The harm a wrong call can do: none to speak of, to files of the workspace, to anything."""


class NeedsPerson(Exception):
    """Raised by a tool whose call only a person can let go on."""

    def __init__(self, question: Question) -> None:
        super().__init__(question.prompt)
        self.question = question
