"""config.yaml is edited as text: only the lines of changed values are rewritten."""

import difflib
import subprocess
import sys
from collections.abc import Mapping

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hermes.settings.config_file import dumped, edits, lost_comments

FILE = """# head

model:   gpt      # aligned
agent:
    max_turns:   3
    # last of agent

# about logging
logging:
  level: debug   # loud
  file: "x"
nothing: ~
list:
- a
-   b
flow: [a,
  b]
wrapped: this is a
  long text
block: |
  one
  two

# about deep
deep:
   more:
        one: 1   # here
        two: 2
# the end
"""


def read(text: str) -> object:
    try:
        return yaml.safe_load(text) or {}
    except yaml.YAMLError:
        return None


def contents(text: str) -> dict[str, object]:
    found = read(text)
    assert isinstance(found, dict)
    return found


def best(text: str, new: Mapping[str, object]) -> str:
    return next(one for one in edits(text, contents(text), new) if read(one) == new)


def difference(before: str, after: str) -> list[str]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def with_values(**values: object) -> dict[str, object]:
    """Returns the values in `FILE` with these changes. The value None removes the key."""
    new = {**contents(FILE), **values}
    return {name: value for name, value in new.items() if value is not None or name == "nothing"}


@pytest.mark.parametrize(
    ("values", "changed"),
    [
        ({"logging": {"level": "no", "file": "x"}},
         ["-  level: debug   # loud", "+  level: 'no'    # loud"]),
        ({"agent": {"max_turns": 7}}, ["-    max_turns:   3", "+    max_turns: 7"]),
        ({"agent": {"max_turns": 3, "drain": 1.5}}, ["+    drain: 1.5"]),
        ({"agent": None}, ["-agent:", "-    max_turns:   3", "-"]),
        ({"list": None}, ["-list:", "-- a", "--   b"]),
        ({"list": ["1", "c"]}, ["-list:", "-- a", "--   b", "+list: ['1', c]"]),
        ({"block": "1:30"}, ["-block: |", "-  one", "-  two", "-", "+block: '1:30'"]),
        ({"block": "a\nb"}, ["-block: |", "-  one", "-  two", "-", '+block: "a\\nb"']),
        ({"deep": {"more": {"one": 1, "two": 2, "three": True}}}, ["+        three: true"]),
        ({"deep": {"more": {"two": 2}}}, ["-        one: 1   # here"]),
        ({"model": {"default": "gpt"}},
         ["-model:   gpt      # aligned", "+model:            # aligned", "+  default: gpt"]),
        ({"new": {"section": {"key": "é"}}}, ["+new:", "+  section:", "+    key: é"]),
    ],
)  # fmt: skip
def test_only_changed_lines_are_rewritten(values: Mapping[str, object], changed: list[str]) -> None:
    assert difference(FILE, best(FILE, with_values(**values))) == changed


@pytest.mark.parametrize("name", ["flow", "wrapped"])
def test_if_a_line_can_not_be_located_the_comments_are_still_kept(name: str) -> None:
    after = best(FILE, with_values(**{name: "x"}))
    assert not lost_comments(FILE, after)
    assert f"{name}: x\n" in after


def test_an_empty_value_can_become_a_section() -> None:
    after = best(FILE, with_values(nothing={"a": 1}))
    assert "\nnothing:\n  a: 1\n" in after
    assert not lost_comments(FILE, after)


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        ("a: 1 # x\n", "a: 2 # x\n", False),
        ("a: 1 # x\n# y\n", "# y\na: 2\n", True),
        ("# x\n# x\n", "# x\n", True),
        ("a: b#c\n", "a: d\n", False),
    ],
)
def test_lost_comments_are_noticed(before: str, after: str, lost: bool) -> None:
    assert lost_comments(before, after) == lost


def test_a_file_that_only_ruamel_rejects_is_rewritten() -> None:
    text = "a: 1\nb: !!python/none\n"
    assert [*edits(text, {"a": 1}, {"a": 2})][-1] == "a: 2\n"


TEXT = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]))
SCALARS = st.none() | st.booleans() | st.integers() | TEXT | st.sampled_from(
    ["no", "on", "~", "1:30", "0x1", "1e3", "1_0", "# x", "a: b", "-", "?", "<<", "2024-13-01"]
)  # fmt: skip
VALUES = SCALARS | st.lists(SCALARS, max_size=3)
SECTIONS = st.dictionaries(st.sampled_from("abcd"), VALUES | st.dictionaries(TEXT, VALUES))


@given(SECTIONS, SECTIONS)
def test_any_value_is_read_back_unchanged_and_comments_are_kept(
    old: dict[str, object], new: dict[str, object]
) -> None:
    text = f"# head\n{dumped(old) if old else ''}"
    after = next(one for one in edits(text, old, new) if read(one) == new)
    assert after.startswith("# head\n")


def test_the_libraries_are_not_imported_before_they_are_needed() -> None:
    code = (
        "import sys, hermes.entry.cli.config, hermes.entry.cli.gateway;"
        "print([name for name in sys.modules if name.startswith(('ruamel', 'dotenv'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
