"""The prompt of an interactive chat: edits a message, with history, search and completion."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio
from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.auto_suggest import AutoSuggest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input.typeahead import get_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style

from hermes.entry.terminal.completion import offers_menu
from hermes.entry.terminal.protocols import ESCAPE_SECONDS, MARK

AGAIN = "Ctrl-C again leaves"
LEAVE_HINT_SECONDS = 3.0
"""Seconds for which the hint `AGAIN` is shown after Ctrl-C. A second Ctrl-C within this time leaves
the program."""
LONGEST_KEPT = 10_000
"""Maximum number of characters of a message in the history file."""
MENU_LINES = 6
STYLE = Style.from_dict(
    {
        "mark": "bold ansicyan",
        "auto-suggestion": "noinherit dim",
        "hint": "dim",
        "status": "dim",
        "completion-menu": "noinherit",
        "completion-menu.completion.current": "noinherit reverse",
        "completion-menu.meta.completion": "noinherit dim",
        "completion-menu.meta.completion.current": "noinherit reverse",
        "scrollbar.background": "noinherit",
        "scrollbar.button": "noinherit reverse",
    }
)


class LineEditor:
    """Reads messages, one per call of `read`. A status line is shown above the input."""

    def __init__(
        self,
        history: Path,
        completer: Completer,
        suggestions: AutoSuggest,
        status: Callable[[], str],
        *,
        color: bool,
    ) -> None:
        self._status = status
        self._leaving = False
        """Whether Ctrl-C was just pressed, so that a second Ctrl-C exits."""
        self._draft = ""
        """The text that was typed, but not sent, when `leave` was called."""
        self._escape = ""
        """The text that the Esc key enters; empty if the key has no effect."""
        self._timer: asyncio.Task[None] | None = None
        """The task that removes the hint that Ctrl-C shows."""
        self._session: PromptSession[str] = PromptSession(
            self._prompt,
            multiline=True,
            prompt_continuation=" " * len(MARK),
            history=InputHistory(history),
            auto_suggest=suggestions,
            completer=completer,
            complete_in_thread=True,
            complete_while_typing=Condition(_offers_menu),
            reserve_space_for_menu=MENU_LINES,
            key_bindings=self._keys(),
            placeholder=self._hint,
            style=STYLE,
            color_depth=None if color else ColorDepth.DEPTH_1_BIT,
            enable_suspend=True,
        )
        self._session.default_buffer.on_text_changed += self._typed
        self._session.app.ttimeoutlen = ESCAPE_SECONDS

    async def read(self, draft: str = "", escape: str = "") -> str | None:
        """Reads a message that begins with the draft. Returns None when the person leaves. If
        nothing is typed, the Esc key enters the text `escape`."""
        self._leaving, self._escape = False, escape
        draft, self._draft = self._draft + draft, ""
        try:
            return await self._session.prompt_async(
                default=draft, set_exception_handler=False, handle_sigint=False
            )
        except EOFError:
            return None

    def leave(self) -> None:
        """Ends `read` as if the person had left. The text that was typed so far is kept for the
        next `read`."""
        if self._session.app.is_running:
            self._draft = self._session.default_buffer.text
            self._session.app.exit(exception=EOFError())

    def take_keys(self) -> list[KeyPress]:
        """Removes and returns the keys that were typed after the key that ended `read`."""
        return get_typeahead(self._session.input)

    def _typed(self, _buffer: Buffer) -> None:
        self._leaving = False

    def _escapes(self) -> bool:
        return bool(self._escape) and not get_app().current_buffer.text

    def _prompt(self) -> StyleAndTextTuples:
        # Removes the status line above a sent message.
        status = "" if get_app().is_done else self._status()
        above: StyleAndTextTuples = [("class:status", f"{status}\n")] if status else []
        return [*above, ("class:mark", MARK)]

    def _hint(self) -> StyleAndTextTuples:
        shown = self._leaving and not get_app().is_done
        return [("class:hint", AGAIN if shown else "")]

    async def _forget_ctrl_c(self) -> None:
        await anyio.sleep(LEAVE_HINT_SECONDS)
        self._leaving = False
        get_app().invalidate()

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        # These keys must not apply while the person searches the history. The search has its own
        # buffer, in which Enter has another meaning.
        typing = has_focus(DEFAULT_BUFFER)

        @keys.add("enter", filter=typing)
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if buffer.document.is_cursor_at_the_end and buffer.text.endswith("\\"):
                buffer.delete_before_cursor()
                buffer.newline(copy_margin=False)
            else:
                buffer.validate_and_handle()

        # Without `eager`, the key would wait for a second key, and swallow it.
        @keys.add("escape", filter=typing & Condition(self._escapes), eager=True)
        def _(event: KeyPressEvent) -> None:
            event.app.exit(result=self._escape)

        @keys.add("escape", "enter", filter=typing)
        @keys.add("c-j", filter=typing)
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.newline(copy_margin=False)

        @keys.add("c-c", filter=typing)
        def _(event: KeyPressEvent) -> None:
            if self._leaving:
                event.app.exit(exception=EOFError())
                return
            event.current_buffer.reset()
            self._leaving = True
            if self._timer is not None:
                self._timer.cancel()
            self._timer = event.app.create_background_task(self._forget_ctrl_c())

        return keys


class InputHistory(FileHistory):
    """The messages of all runs, in a file that only its owner can read.

    A message that can't be written, for example because the disk is full, is not kept.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with suppress(OSError):
            os.close(os.open(path, os.O_CREAT | os.O_CLOEXEC, 0o600))
            path.chmod(0o600)

    def store_string(self, string: str) -> None:
        if len(string) <= LONGEST_KEPT:
            with suppress(OSError):
                super().store_string(string)


def _offers_menu() -> bool:
    return offers_menu(get_app().current_buffer.document.text_before_cursor)
