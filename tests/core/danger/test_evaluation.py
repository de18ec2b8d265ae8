"""Values are followed through variables, functions, loops, pipes and files of a script."""

import pytest

from hermes.core.danger.detector import judge


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("x=a; x=rm; $x -r b", "ask"),
        ("x=ls; if a; then x=rm; fi; $x -r b", "ask"),
        ("x=ls; $x -r b", "run"),
        ("x=rm; (x=ls); $x -r b", "ask"),
        ("(x=rm); x=ls; $x -r b", "run"),
        ("x=rm cmd; $x", "ask"),
        ("for i in a b; do rm $i; done", "run"),
        ("for i in a b; do rm -r $i; done", "ask"),
        ("for i in $(cat f); do rm $i; done", "ask"),
        ("for c in ls rm; do $c -r b; done", "ask"),
        ("echo a > f; cat f | sh", "run"),
        ('echo "rm -r a" > f; cat f | sh', "ask"),
        ("a=/; cd $a; rm -rf *", "never"),
        ("(cd /); rm -f a", "run"),
        ("cd /etc && touch hosts", "run"),
        ("cd /etc && echo a > hosts", "ask"),
    ],
)
def test_values_are_followed_through_a_script(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ('f() { rm -r "$1"; }', "run"),
        ('f() { rm -r "$1"; }; f a', "ask"),
        ('f() { "$@"; }; f rm -r a', "ask"),
        ("f() { f; }; f", "run"),
        ("f() { rm -r a; }; b && f() { ls; }; f", "ask"),
        ("f() { f | f; }; f", "never"),
        ("alias rm='rm -i'; rm a", "run"),
        ("alias ll='rm -r'; ll a", "ask"),
        ("alias g='git push'; g --force", "ask"),
    ],
)
def test_functions_and_aliases_are_evaluated_where_they_are_used(
    command: str, outcome: str
) -> None:
    assert judge(command).outcome == outcome


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("$x a", "ask"),
        ('"$x" a', "ask"),
        ("$x/bin/ls", "ask"),
        ("/bin/l? a", "ask"),
        ("[ -e a ]", "run"),
        ("./$(uname)/tool", "ask"),
        ("$(which ls)", "ask"),
    ],
)
def test_a_program_that_is_not_known_needs_approval(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("while :; do a & done", "ask"),
        ("while read x; do a & done", "run"),
        ("while true; do a; sleep 1; done", "run"),
        ("yes > f", "ask"),
        ("yes | head > f", "run"),
        ("yes | apt install x", "run"),
        ("cat /dev/urandom > /dev/null", "run"),
    ],
)
def test_endless_loops_and_files_need_approval(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome
