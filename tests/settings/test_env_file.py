"""The lines of .env are read and changed."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.settings import ENVIRON
from hermes.settings.env_file import read_dotenv, with_assignment, without_assignments
from hermes.types.errors import ConfigError

PATH = Path("/home/me/.hermes/.env")


def values(text: str) -> dict[str, str]:
    found, warnings = read_dotenv(PATH, text)
    assert warnings == []
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("A=1", {"A": "1"}),
        ("A = 1 \n\n B=2\n", {"A": "1", "B": "2"}),
        ("export A=1\nexport\tB=2\n", {"A": "1", "B": "2"}),
        ("# A=1\n  # B=2\nC=3 # D=4\nE=5#6\n", {"C": "3", "E": "5#6"}),
        ('A= # none\nB=\nC=""\n', {}),
        ("A=1\nA=2\nA=\n", {"A": "2"}),
        ("A='a # b' # c\nB=\"a # b\" # c\n", {"A": "a # b", "B": "a # b"}),
        ('A="it\'s"\nB=\'say "x"\'\n', {"A": "it's", "B": 'say "x"'}),
        ("A=a=b==\n", {"A": "a=b=="}),
        ("A=two words\n", {"A": "two words"}),
        ('A="one\ntwo"\nB=3\n', {"A": "one\ntwo", "B": "3"}),
        (r'A="a\nb"' "\n" r"B='a\nb'", {"A": "a\nb", "B": r"a\nb"}),
        ("A=1\r\nB=2\r\n", {"A": "1", "B": "2"}),
    ],
)
def test_assignments_are_read(text: str, expected: dict[str, str]) -> None:
    assert values(text) == expected


def test_nothing_is_interpolated_and_the_environment_is_not_changed() -> None:
    before = dict(ENVIRON)
    text = 'A=1\nB=${A}-$A-${PATH}\nC="${HOME}"\n'
    assert values(text) == {"A": "1", "B": "${A}-$A-${PATH}", "C": "${HOME}"}
    assert dict(ENVIRON) == before


@pytest.mark.parametrize(
    "line",
    ["sk-secret-pasted", "A", "two words=1", "1A=2", "a-b=2", "=x", "A='never ends", "A='x' y"],
)
def test_the_warning_about_an_invalid_line_shows_only_its_number(line: str) -> None:
    found, warnings = read_dotenv(PATH, f"# one\n\nB=2\n\n\n{line}\nC=3\n")
    assert found == {"B": "2", "C": "3"}
    assert warnings == [f"{PATH} line 6 is not NAME=value and is ignored"]


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("", "x", "A=x\n"),
        ("B=1", "x", "B=1\nA=x\n"),
        ("# c\n\nexport A=old # why\nB=1\n", "x", "# c\n\nA=x\nB=1\n"),
        ("B=1\nA=old", "x", "B=1\nA=x"),
        ("A=1\nAB=2\nA=3\n", "x", "A=x\nAB=2\nA=x\n"),
        ('A="one\ntwo"\nB=1\n', "x", "A=x\nB=1\n"),
        ("not an assignment\n  B = 1\n", "x", "not an assignment\n  B = 1\nA=x\n"),
        ("", "two words", 'A="two words"\n'),
        ("", 'say "x"', "A='say \"x\"'\n"),
        ("", r"c:\new", "A=c:\\new\n"),
        ("", r"c:\new folder", "A='c:\\new folder'\n"),
        ("", "${HOME}", "A=${HOME}\n"),
        ("", "#x", 'A="#x"\n'),
    ],
)
def test_a_new_value_replaces_the_old_value_in_its_line(
    before: str, value: str, after: str
) -> None:
    found = with_assignment(before, "A", value)
    assert found == after
    assert read_dotenv(PATH, found)[0]["A"] == value


@pytest.mark.parametrize("value", ["a\nb", "a\0", "'\"", r"\\ '"])
def test_a_value_that_does_not_fit_into_a_line_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="A can't hold"):
        with_assignment("", "A", value)


@given(st.text(), st.text())
def test_a_written_value_is_read_back_unchanged(before: str, value: str) -> None:
    try:
        text = with_assignment(f"B=1\n# {before}\n".replace("\r", ""), "A", value)
    except ConfigError:
        return
    assert read_dotenv(PATH, text)[0].get("A", "") == value


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# a\nA=1\nAB=2\n", "# a\nAB=2\n"),
        ("B=1\n\n  export A=1 # x\nC=2", "B=1\n\nC=2"),
        ("A=1\nB=2\nA=3", "B=2\n"),
        ("B=2\n", "B=2\n"),
        ('A="one\ntwo"\n# b\n', "# b\n"),
    ],
)
def test_an_assignment_is_removed(before: str, after: str) -> None:
    assert without_assignments(before, ["A"]) == after
