"""`hermes people`: shows people with their roles, and links several user ids of one person."""

import time

import anyio
import click
import msgspec

from hermes import settings as configuration
from hermes.control import people as known
from hermes.control.people import KnownPerson
from hermes.entry.cli.main import Commands, plainly
from hermes.entry.cli.platform_names import check_platform
from hermes.entry.cli.runtime import Runtime
from hermes.entry.output import say, say_json, say_line
from hermes.settings.access import access_policy
from hermes.types.identity import OWNER


@click.command(cls=Commands, default="list")
def people() -> None:
    """Show people, and link the user ids of one person. Without a command: `hermes people list`.

    ID is a platform and a user id, such as telegram:7. The id `owner` is the person at this
    terminal.
    """


@people.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.pass_obj
@plainly
def list_(runtime: Runtime, as_json: bool) -> None:
    """List the people who are named in the settings, paired or linked."""
    settings = configuration.load()

    async def read() -> list[KnownPerson]:
        async with runtime.open_store(settings) as store:
            return await store.read(known.known_people, access_policy(settings))

    found = anyio.run(read)
    for one in found:
        if as_json:
            say_json(msgspec.json.encode(one).decode())
        else:
            say_line(f"{one.role:<5}  {', '.join((*one.ids, *one.names))}")
    if not found and not as_json:
        say("Nobody is named in the settings, paired or linked.")


@people.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID ID...")
@click.pass_obj
@plainly
def link(runtime: Runtime, ids: tuple[str, ...]) -> None:
    """Make several ids one person, who has one memory and the highest role of these ids."""
    if len(set(ids)) < 2:
        raise click.UsageError("name at least two ids, such as telegram:7 matrix:@ann:example.org")
    for id in ids:
        if id != OWNER:
            check_platform(runtime, known.parse_id(id)[0])

    async def run() -> str:
        async with runtime.open_store(configuration.load()) as store:
            return await store.run(known.link, ids, time.time())

    person = anyio.run(run)
    say_line(f"{', '.join(ids)} are now one person, {person}")


@people.command()
@click.argument("id")
@click.pass_obj
@plainly
def unlink(runtime: Runtime, id: str) -> None:
    """Remove the link between an id and its person. The id keeps its own sessions."""

    async def run() -> None:
        async with runtime.open_store(configuration.load()) as store:
            await store.run(known.unlink, id)

    anyio.run(run)
    say_line(f"{id} is now a person of its own")
