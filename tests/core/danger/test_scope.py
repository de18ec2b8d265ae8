"""The state of a shell while a command is evaluated: variables, functions and aliases."""

from hermes.core.danger.holes import ANYTHING, ONE_WORD, PLAIN_NAME, SECRET_TEXT
from hermes.core.danger.scope import ShellScope


def test_variables_of_the_environment_are_known_by_their_names() -> None:
    scope = ShellScope()
    assert scope.value("HOME") == "~"
    assert scope.value("USER") == PLAIN_NAME
    assert scope.value("MY_API_KEY") == SECRET_TEXT
    assert scope.value("x") == ANYTHING


def test_an_assignment_that_may_be_skipped_makes_the_value_unknown() -> None:
    scope = ShellScope()
    scope.assign("x", "rm")
    scope.conditional = True
    scope.assign("x", "rm")
    assert scope.value("x") == "rm"
    scope.assign("x", "ls")
    assert scope.value("x") == ANYTHING


def test_positional_parameters_are_found_by_their_number() -> None:
    scope = ShellScope()
    scope.arguments = ("a", "b")
    assert (scope.value("1"), scope.value("2"), scope.value("3")) == ("a", "b", "")
    assert scope.value("@") == "a b"


def test_a_subshell_does_not_change_variables_but_writes_files() -> None:
    scope = ShellScope()
    inner = scope.inner()
    inner.assign("x", "a")
    inner.write("f", "text")
    assert scope.value("x") == ANYTHING
    assert scope.content("./f") == "text"


def test_paths_are_relative_to_the_first_folder() -> None:
    scope = ShellScope()
    assert scope.path("./a/../b") == "b"
    assert scope.path("/usr//bin/./x") == "/usr/bin/x"
    assert scope.path("a/") == "a/"
    scope.folder = "~"
    assert scope.path(".profile") == "~/.profile"
    assert scope.path(f"{ONE_WORD}/x") == f"{ONE_WORD}/x"


def test_a_write_that_may_be_skipped_keeps_both_contents() -> None:
    scope = ShellScope()
    scope.write("f", "rm -r a")
    scope.conditional = True
    scope.write("f", "ls")
    assert scope.content("f") == "rm -r a\nls"


def test_appended_text_follows_the_known_content() -> None:
    scope = ShellScope()
    scope.write("f", "a")
    scope.write("f", "b", append=True)
    scope.write("g", "b", append=True)
    assert scope.content("f") == "ab"
    assert scope.content("g") == f"{ANYTHING}b"
