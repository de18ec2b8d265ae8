"""Where the person types: several lines, with history, search and completion."""

import os
from contextlib import suppress
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style

MARK = "› "
AGAIN = "Ctrl-C again leaves"
LONGEST_KEPT = 10_000
"""Characters of a message that the history file remembers; a longer one is not."""
MENU_LINES = 6
STYLE = Style.from_dict(
    {
        "mark": "bold ansicyan",
        "auto-suggestion": "noinherit dim",
        "hint": "dim",
        "completion-menu": "noinherit",
        "completion-menu.completion.current": "noinherit reverse",
        "completion-menu.meta.completion": "noinherit dim",
        "completion-menu.meta.completion.current": "noinherit reverse",
        "scrollbar.background": "noinherit",
        "scrollbar.button": "noinherit reverse",
    }
)


class LineEditor:
    def __init__(self, history: Path, completer: Completer, *, color: bool) -> None:
        self._leaving = False
        """The last key was Ctrl-C."""
        self._session: PromptSession[str] = PromptSession(
            [("class:mark", MARK)],
            multiline=True,
            prompt_continuation=" " * len(MARK),
            history=InputHistory(history),
            auto_suggest=AutoSuggestFromHistory(),
            completer=completer,
            complete_in_thread=True,
            complete_while_typing=Condition(_offers_commands),
            reserve_space_for_menu=MENU_LINES,
            key_bindings=self._keys(),
            placeholder=self._hint,
            style=STYLE,
            color_depth=None if color else ColorDepth.DEPTH_1_BIT,
            enable_suspend=True,
        )
        self._session.default_buffer.on_text_changed += self._typed

    async def read(self, draft: str = "") -> str | None:
        """What was typed, after what had been already; None when the person leaves."""
        self._leaving = False
        try:
            return await self._session.prompt_async(
                default=draft, set_exception_handler=False, handle_sigint=False
            )
        except EOFError:
            return None

    def leave(self) -> None:
        """Ends a reading as if the person had left."""
        if self._session.app.is_running:
            self._session.app.exit(exception=EOFError())

    def _typed(self, _buffer: Buffer) -> None:
        self._leaving = False

    def _hint(self) -> StyleAndTextTuples:
        return [("class:hint", AGAIN if self._leaving else "")]

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        # A search has a buffer of its own, and its own meaning of Enter.
        typing = has_focus(DEFAULT_BUFFER)

        @keys.add("enter", filter=typing)
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if buffer.document.is_cursor_at_the_end and buffer.text.endswith("\\"):
                buffer.delete_before_cursor()
                buffer.newline(copy_margin=False)
            else:
                buffer.validate_and_handle()

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

        return keys


class InputHistory(FileHistory):
    """What was typed in all runs, for its owner only; a disk that is full just forgets it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with suppress(OSError):
            os.close(os.open(path, os.O_CREAT | os.O_CLOEXEC, 0o600))
            path.chmod(0o600)

    def store_string(self, string: str) -> None:
        if len(string) <= LONGEST_KEPT:
            with suppress(OSError):
                super().store_string(string)


def _offers_commands() -> bool:
    return get_app().current_buffer.text.startswith("/")
