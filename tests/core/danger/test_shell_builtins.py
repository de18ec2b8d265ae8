"""Shell builtins that change the state of the shell or run text as a command are evaluated."""

import pytest

from hermes.core.danger.detector import judge


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ('eval "rm -r a"', "ask"),
        ('eval "$x"', "ask"),
        ('eval "ls $x"', "run"),
        ('eval "$(ssh-agent)"', "run"),
        ('eval "$(kubectl completion bash)"', "run"),
        ('eval "$(kubectl get configmap x)"', "ask"),
        ("source f", "run"),
        (". ./f", "run"),
        ('source "$x"', "ask"),
        ("source /tmp/f", "ask"),
        ('source /dev/stdin <<< "rm -r a"', "ask"),
        ('echo "rm -r a" > f; . ./f', "ask"),
        ("trap 'rm -r a' EXIT", "ask"),
        ("trap - EXIT", "run"),
        ("source", "run"),
    ],
)
def test_text_that_a_builtin_runs_is_evaluated(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("cd ~; echo a > .profile", "ask"),
        ("cd -; ls", "run"),
        ("cd /etc; cd /tmp; cd -; echo a > b", "ask"),
        ('cd "$x" && echo a > b', "run"),
        ('cd "$x" && echo a > .profile', "ask"),
        ('export c="rm -r"; $c a', "ask"),
        ("export c+=x", "run"),
        ('set rm -r a; "$@"', "ask"),
        ('set -- a rm; shift; "$@" -r b', "ask"),
        ('shift "$n"; "$1"', "ask"),
        ('printf -v c "rm -r"; $c a', "ask"),
        ("read c <<< rm; $c -r a", "ask"),
        ("alias x=rm; unalias x; x -r a", "run"),
        ("f() { rm -r a; }; unset f; f", "run"),
        ("mapfile -t x < f; ${x[0]}", "ask"),
    ],
)
def test_builtins_change_the_state(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("command -v rm", "run"),
        ("command rm -r a", "ask"),
        ("exec > log.txt", "run"),
        ("exec rm -r a", "ask"),
        ("history", "run"),
        ("history -c", "ask"),
    ],
)
def test_lookups_and_redirections_run_nothing(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome
