"""The slash commands that the terminal carries out itself."""

from hermes.types.commands import CommandContext, CommandReply, SlashCommand
from hermes.types.store import Work

LEAVE = "exit"


def exit_elsewhere(command: CommandContext) -> Work[CommandReply]:
    """Replies to /exit where there is no interactive chat to leave, as in `hermes chat -q
    /exit`."""
    yield from ()
    return CommandReply(reply="There is no interactive chat to leave.", failed=True)


def terminal_commands() -> tuple[SlashCommand, ...]:
    return (
        SlashCommand(
            name=LEAVE,
            help="leave the chat",
            action=exit_elsewhere,
            aliases=("quit",),
            surfaces=("terminal",),
        ),
    )
