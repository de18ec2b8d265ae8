"""Writes docs/reference from the code: `make docs`. A test fails while a page is not current."""

import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import msgspec

from hermes.app import TOOLS
from hermes.control.commands import builtin_commands
from hermes.entry.cli.main import cli
from hermes.entry.http.server import ROUTES
from hermes.settings import describe

REFERENCE = Path(__file__).parent / "reference"


def pages() -> dict[str, str]:
    """Every reference page by its file name."""
    made = {
        "settings.md": settings(),
        "cli.md": commands(cli, click.Context(cli, info_name="hermes", **cli.context_settings)),
        "commands.md": slash_commands(),
        "tools.md": tools(),
        "http.md": routes(),
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
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))


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
        for one in builtin_commands().commands.values()
    ]
    yield from table(("command", "also", "what it does"), rows)


def tools() -> Iterator[str]:
    yield from ("# Tools", "", "What the agent can do besides talking.", "")
    for tool in TOOLS:
        traits = ["changes nothing"] * tool.read_only + [
            "may run again after a crash"
        ] * tool.repeatable
        yield from (f"## {tool.name}", "", tool.description, "")
        if traits:
            yield from (f"It {' and '.join(traits)}.", "")
        rows = []
        for field in msgspec.structs.fields(tool.arguments):
            given = "required" if field.required else default(field.default)
            rows.append((f"`{field.name}`", kind(field.type), given))
        yield from table(("argument", "value", "default"), rows)
        yield ""


def kind(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


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
