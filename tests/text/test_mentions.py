"""A name is found only as a whole word. Special characters in a name match only themselves."""

import pytest

from hermes.text.mentions import mentions


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("hello Hermes!", True),
        ("@bot:x.org please", True),
        ("hermeses", False),
        ("@bot:xyorg please", False),
        ("", False),
    ],
)
def test_a_name_is_found_only_as_a_whole_word(text: str, found: bool) -> None:
    assert mentions(text, ("@bot:x.org", "hermes")) is found


def test_an_empty_name_is_found_nowhere() -> None:
    assert not mentions("hello", ("", ""))
