"""Generates docs/reference from the code (`make docs`). A test fails if a page is out of date."""

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import aiohttp
import anyio
import click
import msgspec

from docs.field_tables import field_rows, struct_text
from docs.http_reference import http_page
from docs.tables import table
from hermes import hookspecs
from hermes.app.agent import AgentBuilder, GatewayParts
from hermes.app.backends import configured_backend
from hermes.app.builtins import Builtins, all_plugins, configured_models
from hermes.app.stores import home_store
from hermes.boundary.egress import Egress
from hermes.control.commands import GROUP_HEADINGS, CommandTable
from hermes.control.directory import Directory
from hermes.control.media import MediaIntake
from hermes.control.messenger import ChatMessenger
from hermes.control.routing import DEFAULT_AGENT
from hermes.control.targets import TargetPlatform
from hermes.core.models.client import ModelClient
from hermes.core.tools.registry import SETS
from hermes.core.tools.schema import schema_of
from hermes.entry.cli.main import cli
from hermes.settings import Settings, describe
from hermes.settings.platforms import describe_platform
from hermes.settings.schema import FieldDoc
from hermes.settings.sections import WebSettings
from hermes.settings.terminal import TerminalSettings
from hermes.state.media import MediaCache
from hermes.state.paths import Home
from hermes.streaming.stdout import Session
from hermes.types.commands import COMMAND_SURFACES, SlashCommand
from hermes.types.events import AgentEvent
from hermes.types.tools import AnyTool

UNWRAPPED = "\b\n"
"""If a paragraph of help text begins with this text, click does not wrap the paragraph."""
REFERENCE = Path(__file__).parent / "reference"


def pages() -> dict[str, str]:
    """Returns the text of every reference page, by its file name."""
    made = {
        "settings.md": settings(),
        "cli.md": commands(cli, click.Context(cli, info_name="hermes", **cli.context_settings)),
        "commands.md": slash_commands(),
        "tools.md": tools(),
        "http.md": http_page(),
        "events.md": events(),
        "hooks.md": hooks(),
    }
    return {name: "\n".join(lines).rstrip() + "\n" for name, lines in made.items()}


def settings() -> Iterator[str]:
    yield from (
        "# Settings",
        "",
        "Set a value in `config.yaml` under its key, or in an environment variable. Variables can",
        "also be in the file `.env` in the home. The environment takes precedence over `.env`, and",
        "`.env` over `config.yaml`. `hermes config explain KEY` shows where a value comes from.",
        "",
    )
    yield from setting_table(describe())
    for platform in Builtins().register_platforms():
        yield from ("", f"## {platform.name.capitalize()}", "")
        yield from (
            f"`platforms.{platform.name}` also has the settings of every platform, which are listed"
            " above as",
            "`platforms.<name>`.",
            "",
        )
        yield from setting_table(describe_platform(platform))


def setting_table(fields: Sequence[FieldDoc]) -> Iterator[str]:
    rows = [
        (
            f"`{field.key}`",
            " ".join(f"`{name}`" for name in field.env),
            field.type,
            default(field.default),
            field.text,
        )
        for field in fields
    ]
    yield from table(("key", "environment", "value", "default", "meaning"), rows)


def default(value: object) -> str:
    """Returns the default of a setting as it would be written in config.yaml; empty if the setting
    has no default."""
    match value:
        case None | "" | () | msgspec.NODEFAULT:
            return ""
        case dict() if not value:
            return ""
        case tuple() | list():
            return ", ".join(f"`{one}`" for one in value)
        case bool():
            return f"`{str(value).lower()}`"
        case float():
            return f"`{value:g}`"
        case tuple():
            return ", ".join(f"`{one}`" for one in value)
        case _:
            return f"`{value}`"


def commands(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yields the lines about the command and all its subcommands, each with its options."""
    depth = 1 if context.parent is None else 2
    yield from (f"{'#' * depth} {context.command_path}", "", paragraphs(command.help or ""), "")
    usage = command.collect_usage_pieces(context)
    yield from ("```", " ".join([context.command_path, *usage]), "```", "")
    records = [option.get_help_record(context) for option in command.params]
    options = [record for record in records if record]
    if options:
        yield from table(("option", "meaning"), [(f"`{name}`", text) for name, text in options])
        yield ""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, click.Context(below, info_name=name, parent=context))


def paragraphs(text: str) -> str:
    """Converts help text to Markdown: each paragraph becomes one line, and examples are code
    blocks."""
    parts = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(
        f"```\n{part.removeprefix(UNWRAPPED)}\n```"
        if part.startswith(UNWRAPPED)
        else " ".join(part.split())
        for part in parts
    )


def slash_commands() -> Iterator[str]:
    yield from (
        "# Slash commands",
        "",
        "Slash commands work in every chat, in `hermes chat` and in API sessions. The beginning of",
        "a command is enough if it is unambiguous: `/sto` means `/stop`, but `/st` could also mean",
        "`/status`. `/help` lists the commands that you can use in the present place, and `/help",
        "NAME` explains one command.",
        "",
        "The tables name the conditions of each command. If a condition is not met, the reply says",
        "so. A choice that you make with a command, such as a model, applies to one conversation.",
        "No command changes the configuration.",
        "",
        "- *who*: the lowest role that may use the command. An admin may also use the commands of",
        "  users, and an owner may use all commands.",
        "- *where*: the places where the command works.",
        "- *during a turn*: whether the command works while the agent is busy in the conversation.",
        "  Such a command takes effect at once and does not wait for the turn.",
        "- *setting*: the command works only if this setting is true.",
    )
    every = CommandTable(Builtins().register_commands()).commands.values()
    for group, heading in GROUP_HEADINGS.items():
        yield from ("", f"## {heading}", "")
        rows = [command_row(one) for one in every if one.group == group]
        yield from table(COMMAND_COLUMNS, rows)


COMMAND_COLUMNS = ("command", "also", "what it does", "who", "where", "during a turn", "setting")


def command_row(one: SlashCommand) -> tuple[str, ...]:
    return (
        f"`/{one.name}`" + (f" `{one.usage}`" if one.usage else ""),
        " ".join(f"`/{alias}`" for alias in one.aliases),
        one.help,
        one.role.name.lower(),
        "everywhere" if one.surfaces == COMMAND_SURFACES else ", ".join(one.surfaces),
        "yes" if one.while_running else "no",
        f"`{one.setting}`" if one.setting else "",
    )


def every_tool() -> tuple[AnyTool, ...]:
    """Returns all tools of the agent, as in an installation in which every feature is allowed and
    configured."""

    async def made() -> tuple[AnyTool, ...]:
        with TemporaryDirectory() as folder:
            settings = Settings(
                home=Home(root=Path(folder)),
                terminal=TerminalSettings(backend="local"),
                web=WebSettings(searxng_url="http://localhost:8888"),
            )
            async with home_store(settings) as store, aiohttp.ClientSession() as session:
                models = configured_models(settings, all_plugins())
                model = ModelClient(session, models.wires)
                backend = configured_backend(settings, all_plugins().backends())
                media = MediaIntake(MediaCache(settings.files.media), Egress().download)
                platforms = [TargetPlatform(name="telegram", accounts=("telegram",))]
                messenger = ChatMessenger(store, Directory(store, platforms), media)
                parts = GatewayParts(messenger=messenger)
                builder = AgentBuilder(
                    DEFAULT_AGENT, settings, models, store, session, model, backend, parts
                )
                return builder.tools()

    return anyio.run(made)


def tools() -> Iterator[str]:
    yield from (
        "# Tools",
        "",
        "This page lists the tools that the agent can use. The setting `agent.toolsets` selects",
        "tools by toolset or by name. `platforms.<name>.toolsets` replaces this selection for one",
        "platform.",
        "",
    )
    yield from (
        f"`{name}` means {', '.join(f'`{one}`' for one in members if one) or 'nothing'}."
        for name, members in SETS.items()
    )
    yield ""
    for tool in every_tool():
        traits = ["changes nothing"] * tool.read_only
        traits += ["may run again after a crash"] * tool.repeatable
        yield from (f"## {tool.name}", "", tool.description, "")
        yield from (f"Toolset `{tool.toolset}`, risk {tool.risk}.", "")
        if traits:
            yield from (f"This tool {' and '.join(traits)}.", "")
        schema = schema_of(tool.arguments)
        properties, required = schema["properties"], schema.get("required", ())
        assert isinstance(properties, dict)
        assert isinstance(required, list | tuple)
        rows = [
            (
                f"`{name}`",
                kind(field),
                "required" if name in required else default(field.get("default")),
                field.get("description", ""),
            )
            for name, field in properties.items()
        ]
        yield from table(("argument", "value", "default", "meaning"), rows)
        yield ""


def kind(field: dict[str, Any]) -> str:
    """Describes the type of an argument in plain words."""
    if "enum" in field:
        return ", ".join(f"`{one}`" for one in field["enum"])
    if "anyOf" in field:
        return " or ".join(kind(one) for one in field["anyOf"] if one != {"type": "null"})
    match field.get("type"):
        case "array":
            return f"list of {kind(field['items'])}"
        case "object":
            return f"object with {', '.join(f'`{name}`' for name in field['properties'])}"
        case other:
            return str(other)


def events() -> Iterator[str]:
    yield from (
        "# Events of `hermes chat --json`",
        "",
        "`hermes chat --json -q TEXT` prints one JSON object per line. The field `type` names the",
        "event. The first line is `Session`, and the last is `TurnFinished`. A field that has its",
        "default value is left out, and new fields may be added, so ignore fields that you do not",
        "know. The program `jq` selects events, here the text of the answer:",
        "",
        "```console",
        "$ hermes chat --json -q 'Name a river.' | jq -j 'select(.type == \"TextDelta\").text'",
        "```",
        "",
        "The HTTP API has [events with other names](http.md#get-v1runsrun_idevents).",
        "",
    )
    for event in (Session, *get_args(AgentEvent)):
        yield from (f"## {event.__struct_config__.tag}", "", struct_text(event), "")
        rows = list(field_rows(event))
        if rows:
            yield from table(("field", "value", "meaning"), rows)
            yield ""


def hooks() -> Iterator[str]:
    yield from ("# Hooks", "")
    yield from (*inspect.cleandoc(hookspecs.__doc__ or "").split("\n")[2:], "")
    for name, function in hook_functions().items():
        signature = str(inspect.signature(function)).replace("hermes.types.", "")
        shown = re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", signature)
        yield from (f"## {name}", "", "```python", f"def {name}{shown}: ...", "```", "")
        yield from (inspect.getdoc(function) or "", "")


def hook_functions() -> dict[str, Callable[..., object]]:
    """Returns the function of every extension point, by its name."""
    return {
        name: function
        for name, function in vars(hookspecs).items()
        if inspect.isfunction(function) and function.__module__ == hookspecs.__name__
    }


def main() -> None:
    REFERENCE.mkdir(exist_ok=True)
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
