"""The parser accepts the commands that bash accepts."""

import shutil
import subprocess

import pytest

from hermes.core.danger.parsing import parse
from hermes.core.danger.syntax import (
    Compound,
    ForLoop,
    FunctionDefinition,
    NotParsed,
    SimpleCommand,
)

VALID = (
    *("", "# only a comment", "a; b", "a & b", "a && b || c", "a | b |& c", "! a", "time -p a"),
    *(
        "{ a; }",
        "(a; b)",
        "((x++))",
        "((a); b)",
        "[[ a =~ ^(b|c)$ && ! -e d ]]",
        "if a; then b; fi",
    ),
    *("if a; then b; elif c; then d; else e; fi", "while a; do b; done", "until a; do b; done < f"),
    *("for x in a b; do c; done", "for x; do c; done", "for ((i = 0; i < 3; i++)); do a; done"),
    *("select x in a; do b; done", "case $x in a | b) c ;; (d) e ;& *) f ;; esac", "f() { a; }"),
    *("function f { a; }", "function f() (a)", "coproc a b", "coproc X { a; }", "x=1 y=2 a", "x="),
    *("x=(a b)", "x+=(c)", "x[1]=a", "export a=b c='d e'", "declare -a x=(1 2)", "> f", "2>&1 a"),
    *("a <<< b > c", "a 3<> /dev/tcp/h/80", "a &> f", "a {fd}> f", "cat <<A <<B\n1\nA\n2\nB\n"),
    *("cat <<-E\n\ta\n\tE\nb", "x=$(cat <<E\na)\nE\n)", "<<E cat\na\nE", "cat <<E && b\nc\nE"),
    *("diff <(a) <(b)", "echo a#b", "a\\\nb", "a \\\n && b", "a |\n b", "a &&\n b", "echo !$"),
    *("find . \\( -name a \\) -print", "echo [a-z]* ${x//a/b}", "cat <<'E F'\n$x\nE F"),
)
INVALID = (
    *("a &&", "| a", "a ;; b", "(a", "{ a", "if a; fi", "while a; done", "for in", "case a in b"),
    *("f() {", "a )", "a }; }", "fi", "a <", "a > ;", "[[ a", "x=(a", "((1", "a & & b", "; a"),
)


def bash_accepts(command: str) -> bool:
    bash = shutil.which("bash")
    if not bash:
        pytest.skip("bash is not installed")
    done = subprocess.run([bash, "-n", "-c", command], capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.parametrize("command", VALID)
def test_a_command_that_bash_accepts_is_parsed(command: str) -> None:
    parse(command)
    assert bash_accepts(command)


@pytest.mark.parametrize("command", INVALID)
def test_a_command_that_bash_refuses_is_not_parsed(command: str) -> None:
    with pytest.raises(NotParsed):
        parse(command)
    assert not bash_accepts(command)


def test_commands_have_their_kinds() -> None:
    script = parse("a; (b); for x in c; do d; done; f() { e; }")
    kinds = [type(statement.pipelines[0].commands[0]) for statement in script]
    assert kinds == [SimpleCommand, Compound, ForLoop, FunctionDefinition]


def test_the_body_of_a_here_document_belongs_to_its_redirection() -> None:
    first, second = parse("cat <<E\nbody\nE\nls")
    command = first.pipelines[0].commands[0]
    assert isinstance(command, SimpleCommand)
    assert [getattr(part, "text", "") for part in command.redirections[0].target] == ["body\n"]
    assert len(second.pipelines) == 1


def test_a_here_document_behind_an_open_quote_is_not_parsed() -> None:
    with pytest.raises(NotParsed, match="inside of quotes"):
        parse("cat <<E 'a\nb\nE\n'")
