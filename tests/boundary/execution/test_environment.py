"""A command gets only harmless environment variables, and the variables that the operator names."""

from hypothesis import given
from hypothesis import strategies as st

from hermes.boundary.execution.environment import DEFAULT_PATH, VISIBLE_VARIABLES, child_environment

HARMLESS = {"PATH": "/opt/bin", "HOME": "/home/ada", "LANG": "C.UTF-8", "LC_ALL": "C", "TZ": "UTC"}


def test_harmless_variables_are_passed_on() -> None:
    assert child_environment({**HARMLESS, "API_KEY": "x", "LC": "x", "Path": "x"}) == HARMLESS


def test_a_variable_that_the_operator_names_is_passed_on_even_if_it_looks_like_a_secret() -> None:
    environ = {**HARMLESS, "GITHUB_TOKEN": "x", "GITHUB_TOKENS": "y"}
    passed = child_environment(environ, ["GITHUB_TOKEN", "ABSENT"])
    assert passed == {**HARMLESS, "GITHUB_TOKEN": "x"}


def test_path_is_always_set() -> None:
    assert child_environment({}) == {"PATH": DEFAULT_PATH}


@given(st.dictionaries(st.text(), st.text()))
def test_no_other_variable_is_passed_on(environ: dict[str, str]) -> None:
    passed = child_environment(environ)
    assert all(name in VISIBLE_VARIABLES or name.startswith("LC_") for name in passed)
