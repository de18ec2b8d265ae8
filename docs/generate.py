"""Writes docs/reference from the code: `make docs`. A test fails while a page is not current."""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
import anyio
import click

from hermes import hookspecs
from hermes.app.agent import AgentBuilder
from hermes.app.backends import configured_backend
from hermes.app.builtins import all_plugins, configured_models
from hermes.app.stores import home_store
from hermes.control.commands import CommandTable, builtin_commands
from hermes.control.routing import DEFAULT_AGENT
from hermes.core.models.client import ModelClient
from hermes.core.tools.registry import SETS
from hermes.core.tools.schema import schema_of
from hermes.entry.cli.main import cli
from hermes.entry.http.auth import DELAY_SECONDS, DELAYED, GUESSES
from hermes.entry.http.connection import HEADER_BYTES, PIPELINED
from hermes.entry.http.connections import ClientLimits
from hermes.entry.http.middleware import WHOLE_BODY_SECONDS
from hermes.entry.http.server import ROUTES
from hermes.settings import Settings, describe
from hermes.settings.sections import TerminalSettings, WebSettings
from hermes.state.paths import Home
from hermes.types.tools import AnyTool

AS_IT_STANDS = "\b\n"
"""What click is told with, not to wrap a paragraph."""
REFERENCE = Path(__file__).parent / "reference"


def pages() -> dict[str, str]:
    """Every reference page by its file name."""
    made = {
        "settings.md": settings(),
        "cli.md": commands(cli, click.Context(cli, info_name="hermes", **cli.context_settings)),
        "commands.md": slash_commands(),
        "tools.md": tools(),
        "http.md": routes(),
        "hooks.md": hooks(),
    }
    return {name: "\n".join(lines).rstrip() + "\n" for name, lines in made.items()}


def settings() -> Iterator[str]:
    yield from (
        "# Settings",
        "",
        "A setting is given in `config.yaml` under its key, or by an environment variable, which",
        "may also stand in `.env`. The environment beats `.env`, and `.env` beats `config.yaml`.",
        "`hermes config explain KEY` says where a value comes from.",
        "",
    )
    rows = [
        (
            f"`{field.key}`",
            " ".join(f"`{name}`" for name in field.env),
            field.type,
            default(field.default),
            field.text,
        )
        for field in describe()
    ]
    yield from table(("key", "environment", "value", "default", "what it decides"), rows)


def default(value: object) -> str:
    match value:
        case None | "" | ():
            return ""
        case bool():
            return f"`{str(value).lower()}`"
        case _:
            return f"`{value}`"


def commands(command: click.Command, context: click.Context) -> Iterator[str]:
    """The command and all below it, each with its options."""
    depth = 1 if context.parent is None else 2
    yield from (f"{'#' * depth} {context.command_path}", "", paragraphs(command.help or ""), "")
    usage = command.collect_usage_pieces(context)
    yield from ("```", " ".join([context.command_path, *usage]), "```", "")
    records = [option.get_help_record(context) for option in command.params]
    options = [record for record in records if record]
    if options:
        yield from table(("option", ""), [(f"`{name}`", text) for name, text in options])
        yield ""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, click.Context(below, info_name=name, parent=context))


def paragraphs(text: str) -> str:
    """The help as Markdown: one line for a paragraph, and examples as they stand."""
    parts = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(
        f"```\n{part.removeprefix(AS_IT_STANDS)}\n```"
        if part.startswith(AS_IT_STANDS)
        else " ".join(part.split())
        for part in parts
    )


def slash_commands() -> Iterator[str]:
    yield from (
        "# Slash commands",
        "",
        "They work in every chat, in `hermes chat` and in API sessions. An unambiguous prefix is",
        "enough: `/st` could be two of them, `/sto` is `/stop`.",
        "",
    )
    rows = [
        (f"`/{one.name}`", " ".join(f"`/{alias}`" for alias in one.aliases), one.help)
        for one in CommandTable(builtin_commands()).commands.values()
    ]
    yield from table(("command", "also", "what it does"), rows)


def every_tool() -> tuple[AnyTool, ...]:
    """The tools of an installation in which everything is allowed and configured."""

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
                builder = AgentBuilder(
                    DEFAULT_AGENT, settings, models, store, session, model, backend
                )
                return builder.tools()

    return anyio.run(made)


def tools() -> Iterator[str]:
    yield from (
        "# Tools",
        "",
        "What the agent can do besides talking. `agent.toolsets` chooses among them, by toolset or",
        "by name; `platforms.<name>.toolsets` does for one platform.",
        "",
    )
    yield from (
        f"`{name}` stands for {', '.join(f'`{one}`' for one in members if one) or 'nothing'}."
        for name, members in SETS.items()
    )
    yield ""
    for tool in every_tool():
        traits = ["changes nothing"] * tool.read_only
        traits += ["may run again after a crash"] * tool.repeatable
        yield from (f"## {tool.name}", "", tool.description, "")
        yield from (f"Toolset `{tool.toolset}`, risk {tool.risk}.", "")
        if traits:
            yield from (f"It {' and '.join(traits)}.", "")
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
    """The type of an argument as a person would say it."""
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


def routes() -> Iterator[str]:
    yield from (
        "# HTTP",
        "",
        "Requests carry `Authorization: Bearer KEY` unless the table says otherwise. The key is",
        "the setting `api_server.key`; when it is empty, the file `api_server.key` in the home.",
        "",
    )
    yield from table(
        ("request", ""), [(f"`{method} {path}`", text) for method, path, text in ROUTES]
    )
    yield from ("", "`HEAD` works wherever `GET` does.", "", "## Limits", "")
    yield from table(("what", "limit", "beyond it"), list(http_limits()))


def http_limits() -> Iterator[tuple[str, str, str]]:
    """What a client may send and hold, and what happens beyond it."""
    limits = ClientLimits()
    yield "request line and headers", f"{HEADER_BYTES // 1024} kB", "431, and the connection closes"
    yield "body", "`api_server.max_body_bytes`", "413"
    yield "seconds to complete a header", f"{limits.sending:g}", "the connection closes"
    yield (
        "seconds without a part of the body",
        f"{limits.body:g}",
        f"408; the whole body may take {WHOLE_BODY_SECONDS:g} s",
    )
    yield "seconds without a request", f"{limits.idle:g}", "the connection closes"
    yield (
        "seconds without reading a response",
        f"{limits.unread:g}",
        "the connection is reset; a stream can be resumed with `Last-Event-ID`",
    )
    yield "requests sent ahead on one connection", f"{PIPELINED}", "the connection is reset"
    yield (
        "connections",
        "half of the descriptors of the process",
        "the connection that has been idle longest closes; if every one is in use, 503",
    )
    yield (
        "wrong keys from one address",
        f"{GUESSES}",
        f"429 after {DELAY_SECONDS:g} s for each further one; {DELAYED} answers wait at a time,"
        " others come at once",
    )
    yield "`Host` headers", "1", "400; a local server answers 403 to foreign names"


def hooks() -> Iterator[str]:
    yield from ("# Hooks", "")
    yield from (*inspect.cleandoc(hookspecs.__doc__ or "").split("\n")[2:], "")
    for name, function in hook_functions().items():
        signature = str(inspect.signature(function)).replace("hermes.types.", "")
        shown = re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", signature)
        yield from (f"## {name}", "", "```python", f"def {name}{shown}: ...", "```", "")
        yield from (inspect.getdoc(function) or "", "")


def hook_functions() -> dict[str, Callable[..., object]]:
    """Every extension point by its name."""
    return {
        name: function
        for name, function in vars(hookspecs).items()
        if inspect.isfunction(function) and function.__module__ == hookspecs.__name__
    }


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        cells = [" ".join(cell.replace("|", r"\|").split()) for cell in row]
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    REFERENCE.mkdir(exist_ok=True)
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
