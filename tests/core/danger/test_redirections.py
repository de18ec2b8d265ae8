"""A redirection is judged by its target."""

import pytest

from hermes.core.danger.detector import judge


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("a > f", "run"),
        ("a >> ~/.bashrc", "ask"),
        ("a > /etc/x", "ask"),
        ("a >| /etc/x", "ask"),
        ("a &> /etc/x", "ask"),
        ("a 2> /etc/x", "ask"),
        ('a > "$x"', "ask"),
        ('a > "logs/$x"', "run"),
        ('a > "$HOME/x"', "run"),
        ("a > $(date +%F).log", "run"),
        ('a > "$(b)"', "ask"),
        ("a 2>&1", "run"),
        ("a 3>&-", "run"),
        ("a < ~/.ssh/id_rsa", "ask"),
        ("a > /dev/tcp/h/80", "ask"),
        ("{ a; b; } > /etc/x", "ask"),
        ("for i in a; do b; done > /etc/x", "ask"),
        ("a > /dev/sdb", "never"),
        ("> /etc/x", "ask"),
        ("exec 3<<< 'rm -r a'; sh <&3", "ask"),
    ],
)
def test_a_redirection_is_judged_by_its_target(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("sh <<< 'rm -r a'", "ask"),
        ("sh <<< 'ls a'", "run"),
        ("sh <<E\nrm -r a\nE", "ask"),
        ("cat <<E\nrm -r a\nE", "run"),
        ("cat <<E\n$(rm -r a)\nE", "ask"),
        ("cat <<'E'\n$(rm -r a)\nE", "run"),
        ("sh < f", "ask"),
    ],
)
def test_text_for_a_shell_is_evaluated(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome
