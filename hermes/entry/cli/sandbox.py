"""`hermes sandbox`: lists the sandboxes of conversations, opens a shell in a sandbox, and resets a
sandbox."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import anyio
import click
import msgspec
from msgspec.structs import replace

from hermes import settings as configuration
from hermes.control import sessions as conversations
from hermes.control.sessions import NoSuchSession, Summary
from hermes.entry.cli.main import Commands
from hermes.entry.cli.runtime import Runtime
from hermes.entry.cli.sessions import when
from hermes.entry.output import confirm, say, say_json, say_line, terminal_columns
from hermes.settings import Settings
from hermes.text.console import printable_line
from hermes.text.wrapping import hang
from hermes.types.errors import ConfigError
from hermes.types.execution import SandboxInfo
from hermes.types.identity import PersonId, SessionKey
from hermes.types.sandboxes import HomeSandboxes

T = TypeVar("T")

SHOWN_ID = 12
"""Number of characters of an id that `list` shows."""
MOST_TITLES = 10_000
"""Maximum number of conversations whose titles `list` reads, the most recently used first."""


@click.command(cls=Commands, default="list")
def sandbox() -> None:
    """Show and manage the sandboxes of conversations. Without a command: `hermes sandbox list`.

    A sandbox contains the files of a conversation, its /tmp and its home directory. SESSION is an
    id that `list` shows, a whole session key, or a name that `hermes sessions` accepts.
    """


@sandbox.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.pass_obj
def list_(runtime: Runtime, as_json: bool) -> None:
    """List the sandboxes, the most recently used first."""
    found = _run(runtime, _listed)
    if as_json:
        for one in found:
            # Scripts get every field, also the fields that have their default values.
            say_json(msgspec.json.encode(msgspec.structs.asdict(one)).decode())
        return
    if not found:
        say("There are no sandboxes yet: the first command of a conversation creates one.")
    titles = _titles(runtime) if found else {}
    for one in found:
        owner = printable_line(_owner(one, titles.get(one.session, "")))
        label = f"{one.id[:SHOWN_ID]}  {when(one.used_at)}  {_size(one):>10}  "
        say(hang(label, owner, terminal_columns()))


@sandbox.command()
@click.argument("session")
@click.pass_obj
def shell(runtime: Runtime, session: str) -> None:
    """Open an interactive shell in the sandbox of a conversation.

    The shell has the same files, limits and network as the commands of the agent, but no secrets.
    The exit code is that of the shell.
    """
    key, found = _find(runtime, session)
    person = PersonId(found.person) if found and found.person else None
    settings = configuration.load()
    if found and found.workspace:
        # A conversation in a terminal works in the directory in which it was begun.
        folder = Path(found.workspace)
        if not folder.is_dir():
            raise ConfigError(f"the conversation works in {folder}, which does not exist any more")
        settings = replace(settings, workspace=folder)

    async def run(sandboxes: HomeSandboxes) -> int:
        command = await sandboxes.shell(key, person)
        # The shell uses this terminal. This process waits for its end, and serves the network of
        # the sandbox until then.
        async with await anyio.open_process(
            command, stdin=None, stdout=None, stderr=None
        ) as process:
            return await process.wait()

    raise SystemExit(_run(runtime, run, settings))


@sandbox.command()
@click.argument("session")
@click.option("-y", "--yes", is_flag=True, help="Delete without asking first.")
@click.pass_obj
def reset(runtime: Runtime, session: str, yes: bool) -> None:
    """Delete the files of a sandbox, and end the processes that run in it.

    The conversation is kept. Its next command begins with an empty sandbox.
    """
    key, found = _find(runtime, session)
    if found is None:
        raise NoSuchSession(f"{key} has no sandbox: `hermes sandbox list` shows all sandboxes")
    if not yes:
        what = f"the sandbox of {_owner(found)} with {_size(found)}"
        if not confirm(printable_line(f"Delete the files in {what}? This can't be undone.")):
            raise click.Abort
    if _run(runtime, lambda sandboxes: sandboxes.reset(found)):
        say_line(f"reset the sandbox of {_owner(found)}")
    else:
        say_line(f"the sandbox of {_owner(found)} does not exist any more")


def _owner(one: SandboxInfo, title: str = "") -> str:
    name = title or one.session
    return f"{name} ({one.person})" if one.person else name


def _titles(runtime: Runtime) -> dict[str, str]:
    """Maps the keys of sessions to the titles of their current conversations."""

    async def stored() -> Sequence[Summary]:
        async with runtime.open_store(configuration.load()) as store:
            return await store.run(conversations.listed, None, MOST_TITLES)

    return {one.key: one.title for one in anyio.run(stored) if one.current}


def _size(one: SandboxInfo) -> str:
    return f"{one.bytes / 1e6:.1f} MB"


def _find(runtime: Runtime, name: str) -> tuple[SessionKey, SandboxInfo | None]:
    """Returns the session that the name selects, and its sandbox. The sandbox is None if the
    session has none yet. Raises NoSuchSession if the name selects no session."""
    sandboxes = _run(runtime, _listed)
    found = _named(sandboxes, name)
    if found is not None:
        return SessionKey.parse(found.session), found

    async def stored() -> str:
        async with runtime.open_store(configuration.load()) as store:
            return (await store.run(conversations.find, name)).key

    key = anyio.run(stored)
    return SessionKey.parse(key), _named(sandboxes, key)


def _named(sandboxes: Sequence[SandboxInfo], name: str) -> SandboxInfo | None:
    """Returns the sandbox with this session key or id. The part of an id that `list` shows is
    enough."""
    for one in sandboxes:
        if name in (one.session, one.id) or (len(name) >= SHOWN_ID and one.id.startswith(name)):
            return one
    return None


async def _listed(sandboxes: HomeSandboxes) -> Sequence[SandboxInfo]:
    return await sandboxes.listed()


def _run(
    runtime: Runtime,
    action: Callable[[HomeSandboxes], Awaitable[T]],
    settings: Settings | None = None,
) -> T:
    async def run() -> T:
        async with runtime.open_sandboxes(settings or configuration.load()) as sandboxes:
            return await action(sandboxes)

    return anyio.run(run)
