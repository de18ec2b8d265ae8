"""The commands that the terminal carries out itself."""

from hermes.entry.cli.local_commands import LEAVE, exit_elsewhere, terminal_commands
from hermes.testing.command_chats import command_context, result_of


def test_the_commands_exit_and_quit_leave_the_terminal() -> None:
    (leave,) = terminal_commands()
    assert (leave.name, leave.aliases, leave.surfaces) == (LEAVE, ("quit",), ("terminal",))


def test_without_an_interactive_chat_the_command_exit_says_that_there_is_nothing_to_leave() -> None:
    done = result_of(exit_elsewhere(command_context(surface="terminal")))
    assert done.failed
    assert done.reply == "There is no interactive chat to leave."
