"""The line editor reacts to each key."""

import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from hermes.entry.terminal.completion import Completions
from hermes.entry.terminal.line_editor import LONGEST_KEPT, InputHistory, LineEditor
from hermes.entry.terminal.suggestions import HistorySuggestions
from hermes.testing.running import until

ENTER, ALT_ENTER, CTRL_J, CTRL_C, CTRL_D, CTRL_R, UP = (
    "\r", "\x1b\r", "\n", "\x03", "\x04", "\x12", "\x1b[A",
)  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "history"


@asynccontextmanager
async def prompting(file: Path) -> AsyncIterator[tuple[LineEditor, PipeInput]]:
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        completions = Completions({"stop": "end it"}, file.parent)
        suggestions = HistorySuggestions({"stop": ()})
        yield LineEditor(file, completions, suggestions, lambda: "fake", color=True), keys


async def read(file: Path, *typed: str) -> list[str | None]:
    """For each item of `typed`, types these keys and reads a line. Returns the lines, with None for
    each prompt that the person left."""
    found = []
    async with prompting(file) as (prompt, keys):
        for text in typed:
            keys.send_text(text)
            with anyio.fail_after(5):
                found.append(await prompt.read())
    return found


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        (f"hello{ENTER}", "hello"),
        (f"one{ALT_ENTER}two{CTRL_J}three{ENTER}", "one\ntwo\nthree"),
        (f"one\\{ENTER}two{ENTER}", "one\ntwo"),
        (f"\x1b[200~one\r\ntwo\x1b[201~{ENTER}", "one\ntwo"),
        (f"wrong{CTRL_C}right{ENTER}", "right"),
        (f"{CTRL_C}a{CTRL_C}right{ENTER}", "right"),
        (CTRL_D, None),
        (f"{CTRL_C}{CTRL_C}", None),
        (f"half{CTRL_C}{CTRL_C}", None),
    ],
)
async def test_keys_do_what_a_terminal_user_expects(
    file: Path, typed: str, wanted: str | None
) -> None:
    assert await read(file, typed) == [wanted]


async def test_typed_messages_are_in_the_history_of_the_next_run(file: Path) -> None:
    await read(file, f"first{ENTER}", f"second{ENTER}")
    assert await read(file, f"{UP}{UP}{ENTER}") == ["first"]
    assert await read(file, f"{CTRL_R}sec{ENTER}{ENTER}") == ["second"]


async def test_only_the_owner_can_read_the_history(file: Path) -> None:
    file.write_text("")
    file.chmod(0o644)
    await read(file, f"hello{ENTER}")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "+hello" in file.read_text()


def test_a_very_long_message_is_not_written_to_the_history(file: Path) -> None:
    history = InputHistory(file)
    history.append_string("x" * (LONGEST_KEPT + 1))
    assert file.read_text() == ""
    assert len(history.get_strings()) == 1


async def test_a_home_that_cannot_be_written_has_no_history(tmp_path: Path) -> None:
    assert await read(tmp_path / "nowhere" / "history", f"hello{ENTER}") == ["hello"]


async def test_a_signal_ends_the_input(file: Path) -> None:
    found: list[str | None] = []
    async with prompting(file) as (prompt, _), anyio.create_task_group() as group:

        async def reading() -> None:
            found.append(await prompt.read())

        prompt.leave()
        group.start_soon(reading)
        await until(lambda: prompt._session.app.is_running)
        prompt.leave()
    assert found == [None]


async def test_if_nothing_is_typed_the_key_esc_enters_a_prepared_text(file: Path) -> None:
    async with prompting(file) as (prompt, keys):
        with anyio.fail_after(10):
            keys.send_text("\x1b")
            assert await prompt.read(escape="/stop") == "/stop"
            keys.send_text(f"a{ALT_ENTER}b{ENTER}")
            assert await prompt.read(escape="/stop") == "a\nb"


async def test_keys_after_esc_are_kept(file: Path) -> None:
    async with prompting(file) as (prompt, keys):
        with anyio.fail_after(10):
            keys.send_text(f"\x1bhi{ENTER}")
            assert await prompt.read(escape="/stop") == "/stop"
        assert [one.data for one in prompt.take_keys()] == ["h", "i", ENTER]
        assert prompt.take_keys() == []


async def test_esc_at_a_question_acts_at_once(file: Path) -> None:
    async with prompting(file) as (prompt, keys):
        keys.send_text("\x1b")
        # The keys of prompt_toolkit wait for 1.5 s by default.
        with anyio.fail_after(1.2):
            assert await prompt.read(escape="/stop") == "/stop"


async def test_text_that_was_typed_before_the_end_of_a_read_is_kept(file: Path) -> None:
    async with prompting(file) as (prompt, keys):
        async with anyio.create_task_group() as group:
            group.start_soon(prompt.read)
            keys.send_text("half a th")
            await until(lambda: prompt._session.default_buffer.text == "half a th")
            prompt.leave()
        keys.send_text(f"ought{ENTER}")
        assert await prompt.read() == "half a thought"
