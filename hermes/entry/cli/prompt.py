"""`hermes prompt`: shows the parts of the system prompt and their sizes."""

import anyio
import click
import msgspec

from hermes import settings as configuration
from hermes.entry.cli.folder import here
from hermes.entry.cli.main import Commands
from hermes.entry.cli.runtime import Runtime
from hermes.entry.cli.terminal_session import PLATFORM, TERMINAL_ORIGIN
from hermes.entry.output import say, say_heading, say_json, say_unwrapped
from hermes.types.identity import OWNER, Principal
from hermes.types.messages import Origin
from hermes.types.turns import Prompt

ORIGINS = {
    PLATFORM: TERMINAL_ORIGIN,
    "api": Origin(trigger="api", principal=Principal(name="api", person=OWNER)),
}
"""The origins of messages that come from the terminal or over the API, by platform. All other
messages come from chats."""


@click.command(cls=Commands, default="show")
def prompt() -> None:
    """Inspect the system prompt. Without a command: `hermes prompt show`."""


@prompt.command()
@click.option(
    "--platform",
    default="cli",
    show_default=True,
    metavar="NAME",
    help="Show the prompt of a conversation on this platform.",
)
@click.option("--full", is_flag=True, help="Show the text of every part, not only its size.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def show(runtime: Runtime, platform: str, full: bool, as_json: bool) -> None:
    """Show each part of the prompt of a new conversation, with its size."""
    settings = configuration.load()
    if platform == PLATFORM:
        settings = here(settings)
    origin = ORIGINS.get(platform, Origin())
    made = anyio.run(runtime.new_prompt, settings, platform, origin)
    if as_json:
        say_json(msgspec.json.format(msgspec.json.encode(made), indent=2).decode())
        return
    for part in made.parts:
        if full:
            say_heading(f"── {part.name}")
            say_unwrapped(f"{part.text}\n")
    for line in sizes(made):
        say(line)


def sizes(made: Prompt) -> list[str]:
    """Returns a line for each part, and a line for their sum."""
    counted = {part.name: len(part.text) for part in made.parts} | {"tools": made.tools}
    counted["together"] = sum(counted.values())
    width = max(map(len, counted))
    return [f"{name:<{width}}  {count:>7,} characters" for name, count in counted.items()]
