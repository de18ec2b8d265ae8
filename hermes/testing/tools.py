"""Tools for tests of the agent: a harmless, a slow and a broken tool, and a tool that asks a
person."""

from pathlib import Path

import anyio
import msgspec

from hermes.types.tools import NeedsPerson, Tool, ToolContext
from hermes.types.turns import (
    Answered,
    Approved,
    Cancelled,
    Denied,
    Expired,
    Question,
    Undelivered,
)


class Append(msgspec.Struct, kw_only=True):
    token: str
    path: str = "appended"
    """A path relative to the workspace."""


async def _append(context: ToolContext, arguments: Append) -> str:
    path = Path(context.turn.profile.workspace, arguments.path)
    async with await anyio.open_file(path, "a") as file:
        await file.write(arguments.token + "\n")
    return f"appended {arguments.token}"


class AskQuestion(msgspec.Struct, kw_only=True):
    question: str = "Which one?"
    choices: tuple[str, ...] = ()
    expires_in: float = 3600.0
    """Seconds after which the question expires."""


async def _ask(context: ToolContext, arguments: AskQuestion) -> str:
    match context.decision:
        case None:
            raise NeedsPerson(
                Question(
                    call=context.call,
                    kind="question",
                    prompt=arguments.question,
                    choices=arguments.choices,
                    expires_in=arguments.expires_in,
                )
            )
        case Answered(text=text):
            return f"the person said: {text}"
        case Expired():
            return "nobody answered"
        case Undelivered() | Cancelled():
            return "nobody saw the question"
        case Approved() | Denied():
            return "that was no approval"


class Spawn(msgspec.Struct, kw_only=True):
    path: str = "pid"
    """The path of the file that gets the process id, relative to the workspace."""
    seconds: float = 600.0


async def _spawn(context: ToolContext, arguments: Spawn) -> str:
    command = f"echo $$ > {arguments.path}; exec sleep {arguments.seconds}"
    ended = await context.sandbox.run(command, context, seconds=arguments.seconds + 60)
    return f"ended with {ended.code}"


class Slow(msgspec.Struct, kw_only=True):
    seconds: float = 600.0


async def _slow(context: ToolContext, arguments: Slow) -> str:
    context.progress("sleeping")
    await anyio.sleep(arguments.seconds)
    return f"slept for {arguments.seconds} s"


class Boom(msgspec.Struct, kw_only=True):
    pass


async def _boom(context: ToolContext, arguments: Boom) -> str:
    raise RuntimeError("boom")


append = Tool(
    name="append",
    description="Append a token to a file; twice would show.",
    arguments=Append,
    handler=_append,
)
ask = Tool(
    name="ask",
    description="Ask the person a question.",
    arguments=AskQuestion,
    handler=_ask,
    repeatable=True,
)
spawn = Tool(
    name="spawn",
    description="Start a process that sleeps, and wait for its end.",
    arguments=Spawn,
    handler=_spawn,
)
slow = Tool(
    name="slow",
    description="Sleep.",
    arguments=Slow,
    handler=_slow,
    read_only=True,
    repeatable=True,
)
boom = Tool(
    name="boom",
    description="Break in a way that nobody has thought of.",
    arguments=Boom,
    handler=_boom,
    repeatable=True,
)

TEST_TOOLS = (append, ask, spawn, slow, boom)
