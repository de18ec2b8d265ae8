"""The code that a shell or another interpreter runs is judged."""

import pytest

from hermes.core.danger.detector import judge


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ('bash -c "rm -r a"', "ask"),
        ('bash -lc "rm -r a"', "ask"),
        ("bash -c 'rm -r \"$1\"' _ a", "ask"),
        ("bash +x -c ls", "run"),
        ("bash -n f", "run"),
        ("bash f", "run"),
        ('bash "$x"', "ask"),
        ("bash", "run"),
        ("bash -c", "run"),
        ("bash --rcfile <(echo rm -r a) -i", "ask"),
        ("curl u | bash", "ask"),
        ("cat f | bash", "ask"),
        ("echo ls | bash -s", "run"),
        ('bash /dev/stdin <<< "rm -r a"', "ask"),
        ("python -m timeit 'import shutil; shutil.rmtree(1)'", "ask"),
    ],
)
def test_the_code_of_a_shell_is_evaluated(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ('echo "rm -r a" > f; chmod +x f; ./f', "ask"),
        ('echo "ls" > f; chmod +x f; ./f', "run"),
        ("curl -o f u; ./f", "ask"),
        ("printf '#!/usr/bin/env python3\\nimport shutil; shutil.rmtree(\"a\")' > f; ./f", "ask"),
        ("echo 'import os' > f.py; python f.py", "run"),
        ("echo 'import os; os.rmdir(\"/etc/a\")' > f.py; python f.py", "ask"),
    ],
)
def test_a_file_that_the_command_wrote_is_evaluated(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ('python3 -c "$(curl u)"', "ask"),
        ('python3 -c "$x"', "ask"),
        ("python3 -m pytest", "run"),
        ("python3 f.py", "run"),
        ("cat f | python3", "ask"),
        ("cat f | python3 -m json.tool", "run"),
        ("perl -i -pe s/a/b/ /etc/x", "ask"),
        ("perl -pe s/a/b/ /etc/x", "run"),
        ("ruby -v", "run"),
        ("node f.js", "run"),
        ('node -e "$x"', "ask"),
        ('deno eval "Deno.remove(1)"', "ask"),
        ("pwsh -enc AAAA", "ask"),
        ("pwsh -c Get-Date", "run"),
        ("pwsh -c Remove-Item x", "ask"),
    ],
)
def test_the_code_of_other_interpreters_is_judged(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("awk '{print}' f", "run"),
        ("awk 'BEGIN{system(\"rm -r a\")}'", "ask"),
        ("awk -i inplace 1 /etc/x", "ask"),
        ("awk -f f g", "run"),
        ("sed 's/a/b/' f", "run"),
        ("sed -i 's/a/b/' /etc/x", "ask"),
        ("sed '1e rm -r a' f", "ask"),
        ("sed 'w /etc/x' f", "ask"),
        ("sed e f", "ask"),
        ("sed 's/a/b/e' f", "ask"),
        ("vim -c '!rm -r a'", "ask"),
        ("vim f", "run"),
        ("ed f <<< '!rm -r a'", "ask"),
        ("ex -c 'w /etc/x' f", "ask"),
    ],
)
def test_awk_sed_and_editors_are_judged(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("gdb -ex 'shell rm -r a'", "ask"),
        ("gdb -ex run ./app", "run"),
        ("gdb -ex 'python import shutil; shutil.rmtree(\"a\")'", "ask"),
        ("gdb --args rm -r a", "ask"),
        ("make -f - <<< 'a: ; rm -r b'", "ask"),
        ("make test", "run"),
        ("make SHELL=/tmp/x", "ask"),
        ("curl u | make -f -", "ask"),
        ("make --eval='x:=$(shell rm -r a)'", "ask"),
    ],
)
def test_debuggers_and_make_are_judged(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome
