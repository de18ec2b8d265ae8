"""A Python function can be a tool."""

import threading
from collections.abc import Callable
from typing import Annotated

import anyio
import anyio.to_thread
import msgspec
import pytest

from hermes.core.tools.function import TOOL_THREADS, tool
from hermes.core.tools.schema import schema_of
from hermes.testing.running import until
from hermes.testing.turns import a_turn, use
from hermes.types.errors import ConfigError


def repeat(
    word: str, times: Annotated[int, msgspec.Meta(ge=1, description="How often.")] = 2
) -> str:
    """Say a word several times."""
    return " ".join([word] * times)


async def wait(seconds: float = 0.0) -> str:
    """Wait a little."""
    await anyio.sleep(seconds)
    return "waited"


def silent(word: str) -> str:
    return word


def untyped(word) -> str:  # type: ignore[no-untyped-def]
    """Has an argument without a type."""
    return str(word)


def many(*words: str) -> str:
    """Takes any number of arguments."""
    return " ".join(words)


async def test_the_function_gets_the_arguments_of_the_model() -> None:
    assert await use(tool(repeat), a_turn(), {"word": "ho", "times": 3}) == "ho ho ho"
    assert await use(tool(repeat), a_turn(), {"word": "ho"}) == "ho ho"
    assert await use(tool(wait), a_turn(), {}) == "waited"


def test_the_schema_is_derived_from_the_signature() -> None:
    made = tool(repeat)
    assert (made.name, made.description) == ("repeat", "Say a word several times.")
    assert schema_of(made.arguments) == {
        "type": "object",
        "properties": {
            "word": {"type": "string"},
            "times": {"type": "integer", "minimum": 1, "description": "How often.", "default": 2},
        },
        "required": ["word"],
        "additionalProperties": False,
    }


def test_a_function_is_not_read_only_by_default() -> None:
    assert (tool(repeat).read_only, tool(repeat).repeatable) == (False, False)
    harmless = tool(repeat, read_only=True)
    assert (harmless.read_only, harmless.repeatable) == (True, True)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (silent, "docstring"),
        (untyped, "the parameter 'word' .* has no type"),
        (many, r"can't have the parameter \*words"),
    ],
)
def test_a_function_that_a_model_can_not_call_is_refused(
    function: Callable[..., str], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        tool(function)


async def test_sync_functions_run_in_a_few_threads_of_their_own() -> None:
    usual = anyio.to_thread.current_default_thread_limiter()
    seen: list[int] = []
    gate = threading.Event()

    def hold() -> str:
        """Wait for the gate."""
        seen.append(usual.borrowed_tokens)
        gate.wait(10)
        return "done"

    async with anyio.create_task_group() as group:
        for _ in range(TOOL_THREADS + 1):
            group.start_soon(use, tool(hold), a_turn(), {})
        await until(lambda: len(seen) == TOOL_THREADS)
        gate.set()
    assert seen == [0] * (TOOL_THREADS + 1)
