"""Code in a language that Hermes can't parse is judged by the functions that it calls."""

import pytest

from hermes.core.danger.detector import judge


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("perl -e 'print 1'", "run"),
        ("perl -e 'system(\"ls\")'", "run"),
        ("perl -e 'system($x)'", "ask"),
        ('perl -e \'exec("rm", "-r", "a")\'', "ask"),
        ("ruby -e 'puts `rm -r a`'", "ask"),
        ("node -e 'fs.rmSync(\"a\", {recursive: true})'", "ask"),
        ("node -e 'fs.unlinkSync(\"a\")'", "run"),
        ("node -e 'fs.unlinkSync(x)'", "ask"),
        ("php -r 'file_put_contents(\"/etc/x\", 1);'", "ask"),
        ("php -r 'file_put_contents(\"x\", 1);'", "run"),
        ("perl -e 'eval unpack(\"u\", $x)'", "ask"),
        ('ruby -rsocket -e \'exec "/bin/sh" if TCPSocket.new("h", 1)\'', "ask"),
        ("perl -e 'fork until 0'", "never"),
        ("ruby -e 'loop { fork }'", "never"),
        ("lua -e 'os.remove(\"/etc/x\")'", "ask"),
        ("osascript -e 'do shell script \"rm -r a\"'", "ask"),
    ],
)
def test_code_is_judged_by_the_functions_that_it_calls(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome


def test_long_code_needs_approval() -> None:
    assert judge(f"perl -e '{'x' * 30_000}'").outcome == "ask"
