"""The program that a wrapper such as sudo or xargs starts is judged."""

import pytest

from hermes.core.danger.detector import judge


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("sudo -u me -- rm -r a", "ask"),
        ("sudo A=b rm -r a", "ask"),
        ("sudo ls", "run"),
        ("timeout --signal=KILL 5 rm -r a", "ask"),
        ("timeout 5 ls", "run"),
        ('su me -c "rm -r a"', "ask"),
        ("su -", "ask"),
        ('script -qc "rm -r a"', "ask"),
        ("ssh -p 22 host rm -r a", "ask"),
        ("ssh host reboot", "ask"),
        ("ssh host uptime", "run"),
        ('watch -n 1 "rm -r a"', "ask"),
        ("docker exec -it web rm -r a", "ask"),
        ("kubectl -n x exec pod -- rm -r a", "ask"),
        ("perf stat -e x rm -r a", "ask"),
        ("perf report", "run"),
        ("uv run --with x rm -r a", "ask"),
        ("poetry run pytest", "run"),
        ('tmux new -d "rm -r a"', "ask"),
        ("screen -dmS n rm -r a", "ask"),
    ],
)
def test_the_program_behind_a_wrapper_is_judged(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("env -S 'rm -r a'", "ask"),
        ("env -iS'rm -r' a", "ask"),
        ("env -u X A=b rm -r a", "ask"),
        ("env A=b ls", "run"),
        ("env", "run"),
    ],
)
def test_env_splits_its_text_and_sets_variables(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("echo a | xargs rm", "run"),
        ("echo /etc/x | xargs rm", "ask"),
        ("cat f | xargs rm", "ask"),
        ("cat f | xargs -n1 echo rm", "run"),
        ("cat f | xargs -I{} mv {} {}.old", "run"),
        ("cat f | xargs -I% sh -c 'rm -r %'", "ask"),
        ("xargs -a f rm", "ask"),
        ("cat f | xargs", "run"),
    ],
)
def test_xargs_adds_the_arguments_that_it_reads(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("parallel rm -r {} ::: a", "ask"),
        ("parallel gzip ::: a b", "run"),
        ("cat f | parallel", "ask"),
        ("busybox rm -r a", "ask"),
        ("busybox ls", "run"),
        ("busybox", "run"),
    ],
)
def test_the_operands_of_parallel_and_busybox_are_judged_as_commands(
    command: str, outcome: str
) -> None:
    assert judge(command).outcome == outcome
