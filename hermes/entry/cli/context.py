"""`hermes context`: lists the context files that the agent has written, and allows or refuses
them."""

from pathlib import Path

import click
import msgspec

from hermes import settings as configuration
from hermes.entry.cli.main import Commands, plainly
from hermes.entry.cli.runtime import Runtime
from hermes.entry.output import say, say_json, say_line


@click.command(cls=Commands, default="list")
def context() -> None:
    """Allow or refuse context files. Without a command: `hermes context list`.

    A context file is AGENTS.md, CLAUDE.md, HERMES.md, .hermes.md or .cursorrules in the workspace.
    A context file that the agent has written is not loaded as instructions until you allow it. A
    resumed conversation keeps the instructions with which it began.
    """


@context.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.pass_obj
@plainly
def list_(runtime: Runtime, as_json: bool) -> None:
    """List the context files that the agent has written."""
    found = runtime.context_files(configuration.load()).recorded()
    for one in found:
        if as_json:
            say_json(msgspec.json.encode(one).decode())
        else:
            say_line(f"{one.state:<7}  {one.path}")
    if not found and not as_json:
        say("The agent has written no context file.")


@context.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.pass_obj
@plainly
def allow(runtime: Runtime, path: Path) -> None:
    """Allow Hermes to load the context file PATH. If its content changes later, allow the file
    again."""
    if runtime.context_files(configuration.load()).allow(path.absolute()):
        say(f"allowed: {path} is loaded in new conversations while it stays as it is")
    else:
        say(f"nothing to do: {path} is trusted already")


@context.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.pass_obj
@plainly
def revoke(runtime: Runtime, path: Path) -> None:
    """Stop loading the context file PATH until it is allowed again. This also works for a file that
    the agent has not written."""
    runtime.context_files(configuration.load()).revoke(path.absolute())
    say(f"revoked: {path} is not loaded in new conversations")
