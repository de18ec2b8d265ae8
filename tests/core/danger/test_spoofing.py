"""Characters that mislead a person who reads a command are found."""

import pytest

from hermes.core.danger.spoofing import hides_text, spoofs_name, visible


@pytest.mark.parametrize("name", ["r\u200bm", "c\u0443rl", "rm\u202e", "r\x08m", "r\u200dm"])
def test_a_misleading_name_is_found(name: str) -> None:
    assert spoofs_name(name)


@pytest.mark.parametrize("name", ["rm", "программа", "über", "日本"])
def test_an_honest_name_is_accepted(name: str) -> None:
    assert not spoofs_name(name)


def test_hidden_text_is_found_but_emoji_are_not() -> None:
    assert hides_text("a\u202eb")
    assert hides_text("a\x1b[2J")
    assert not hides_text("👩\u200d💻")
    assert not hides_text("a\tb\nc")


def test_invisible_characters_are_shown_as_escapes() -> None:
    assert visible("a\u200bé\x1b\n") == "a\\u200bé\\u001b\n"
