"""The `hermes` command. Its subcommands are imported when they are used."""

import errno
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

import click

from hermes import __version__
from hermes.entry.cli.runtime import Runtime
from hermes.entry.output import say, say_unwrapped, terminal_columns
from hermes.text.console import printable
from hermes.text.spelling import nearest
from hermes.text.wrapping import wrap_words
from hermes.types.errors import ConfigError, HermesError

P = ParamSpec("P")
T = TypeVar("T")

CONFIG_EXIT = 78
"""The exit code EX_CONFIG of sysexits.h, which tells a service manager not to try again."""


NARROW_COLUMNS = 52
"""Width below which click's help texts would not fit into the terminal."""
NOT_WRITABLE = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT})
"""Disk errors that the user can fix. They can occur in any command."""


class Lazy(NamedTuple):
    """A subcommand that is not imported yet."""

    place: str
    """The command's place as `module:attribute`."""
    help: str
    """The first line of the command's help. It is stored here, so that a list of commands needs no
    import."""


class Commands(click.Group):
    """A group whose subcommands can be loaded lazily. Without a default subcommand, it shows its
    help."""

    def __init__(
        self, *args: Any, default: str = "", lazy: Mapping[str, Lazy] | None = None, **rest: Any
    ) -> None:
        super().__init__(*args, **rest)
        self.default = default
        self.lazy = lazy or {}

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command. Control characters in a wrong argument are removed from the error."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            message = f"Error: {printable(error.format_message())}"
            columns = terminal_columns(err=True)
            shown = wrap_words(message, columns) if columns else message
            raise click.UsageError(shown.removeprefix("Error: "), error.ctx) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        module, _, name = self.lazy[cmd_name].place.partition(":")
        command: click.Command = vars(import_module(module))[name]
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the named command. The error for an unknown command suggests a similar
        command."""
        if self.get_command(ctx, args[0]) is None:
            ctx.fail(f"No such command {args[0]!r}. {self.advice(ctx, args)}")
        return super().resolve_command(ctx, args)

    def advice(self, ctx: click.Context, args: list[str]) -> str:
        """Returns advice for a command that does not exist."""
        if near := nearest(args[0], self.list_commands(ctx), 0.7):
            return f"Did you mean `{ctx.command_path} {near}`?"
        return f"`{ctx.command_path} --help` lists the commands."

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {name for option in self.get_params(ctx) for name in option.opts}
        if not self.default:
            return super().parse_args(ctx, args)
        if not args or (args[0].startswith("-") and args[0] not in own):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        plain = {name: one.get_short_help_str(limit=80) for name, one in self.commands.items()}
        with formatter.section("Commands"):
            listed = {name: lazy.help for name, lazy in self.lazy.items()} | plain
            formatter.write_dl(list(listed.items()))


class HermesCommands(Commands):
    """The commands of `hermes`. If the arguments name no command, the error says how to send the
    same text to the agent as a question."""

    def advice(self, ctx: click.Context, args: list[str]) -> str:
        words = shlex.quote(" ".join(args))
        question = f"To ask the agent: {ctx.command_path} -q {words}"
        near = nearest(args[0], self.list_commands(ctx), 0.7) if len(args) == 1 else None
        return f"Did you mean `{ctx.command_path} {near}`? {question}" if near else question


SUBCOMMANDS = {
    "chat": Lazy("hermes.entry.cli.chat:chat", "Talk to the agent in this terminal."),
    "gateway": Lazy("hermes.entry.cli.gateway:gateway", "Run and manage the service."),
    "sessions": Lazy(
        "hermes.entry.cli.sessions:sessions", "Show and manage earlier conversations."
    ),
    "send": Lazy("hermes.entry.cli.send:send", "Send a message to a chat."),
    "pairing": Lazy("hermes.entry.cli.pairing:pairing", "Admit people who ask to be paired."),
    "people": Lazy(
        "hermes.entry.cli.people:people", "Show people, and link the user ids of one person."
    ),
    "model": Lazy("hermes.entry.cli.model:model", "Show and change the model that answers."),
    "status": Lazy("hermes.entry.cli.status:status", "Show the model, the service and the home."),
    "doctor": Lazy(
        "hermes.entry.cli.doctor:doctor", "Find out what works here, and what does not."
    ),
    "logs": Lazy("hermes.entry.cli.log_reader:logs", "Show the log of the service."),
    "audit": Lazy(
        "hermes.entry.cli.audit:audit",
        "Trace a message from its sender to the answer.",
    ),
    "prompt": Lazy("hermes.entry.cli.prompt:prompt", "Inspect the system prompt."),
    "approvals": Lazy("hermes.entry.cli.approvals:approvals", "Decide what the agent may do."),
    "context": Lazy("hermes.entry.cli.context:context", "Allow or refuse context files."),
    "sandbox": Lazy(
        "hermes.entry.cli.sandbox:sandbox", "Show and manage the sandboxes of conversations."
    ),
    "store": Lazy("hermes.entry.cli.store:store", "Copy the store to another database."),
    "config": Lazy("hermes.entry.cli.config:config", "Show, explain and change the configuration."),
}


@click.command(
    cls=HermesCommands,
    default="chat",
    lazy=SUBCOMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", message="hermes %(version)s")
def cli() -> None:
    """One agent, every door. Without a command: `hermes chat`.

    \b
    hermes -q "Name three rivers."
    git diff | hermes -q "Review this."
    """


@cli.command(name="help")
@click.argument("names", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def help_(ctx: click.Context, names: tuple[str, ...]) -> None:
    """Show the help of hermes, or of a command."""
    command: click.Command = cli
    shown = click.Context(
        command, info_name="hermes", terminal_width=ctx.terminal_width, **cli.context_settings
    )
    for name in names:
        found = command.get_command(shown, name) if isinstance(command, click.Group) else None
        if found is None:
            ctx.fail(f"{shown.command_path} has no command {name!r}: try `hermes help`")
        command, shown = found, click.Context(found, info_name=name, parent=shown)
    say_unwrapped(command.get_help(shown))


def run(runtime: Runtime) -> None:
    """Runs the command line of this process and exits. For our own errors, prints only the message,
    without a traceback."""
    try:
        cli(obj=runtime, prog_name="hermes", terminal_width=_help_width())
    except (HermesError, OSError, BaseExceptionGroup) as raised:
        error = sole(raised)
        if isinstance(error, BrokenPipeError):
            _discard_output()
            sys.exit(1)
        if isinstance(error, OSError) and error.errno in NOT_WRITABLE:
            place = error.filename or "a file"
            say(f"{place} can't be written or read: {error.strerror}", err=True)
            sys.exit(1)
        if not isinstance(error, HermesError):
            raise
        say(error, err=True)
        sys.exit(CONFIG_EXIT if isinstance(error, ConfigError) else 1)


def _discard_output() -> None:
    """Discards the rest of the output, because its reader has ended, as in `hermes … | head -1`.
    Otherwise Python would report an error when it writes the rest at exit."""
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _help_width() -> int | None:
    """Returns the width of help texts in columns. None means that click chooses the width."""
    columns = terminal_columns()
    return columns - 2 if columns and columns < NARROW_COLUMNS else None


def sole(error: BaseException) -> BaseException:
    """Returns the only error inside the exception groups that task groups have wrapped around
    it."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        (error,) = error.exceptions
    return error


def plainly(command: Callable[P, T]) -> Callable[P, T]:
    """Wraps a command. If it raises a HermesError, prints only the message and exits with code
    2."""

    @wraps(command)
    def shown(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except HermesError as error:
            say(error, err=True)
            raise SystemExit(2) from None

    return shown
