"""Makes random shell commands, and measures the CPU time that the danger detector needs to judge
them."""

import random
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

from hermes.core.danger.detector import judge
from hermes.types.value import Value

BOMBS = (
    *("(", "{ ", "$(", '"$(', "`$(", "$((", "if a; then ", "a|", "case a in a) ", "${a:-", "f(){ "),
    *("<", "a=(", "[[ a && ", "! ", "eval ", "for i in a; do ", "a[$(", "<("),
)
"""Texts that open a construct of the shell without closing it. If such a text is repeated n times,
the constructs are nested n levels deep."""
REPEATED_TEXTS = (
    *("cat <<E\n", "'a", "{a,", "sudo ", "a;", "x=$x$x;", "find . -exec ", "/./", "s/", "\\", "~/"),
    *('sh -c "', "$'", "`", "xargs ", "env ", "-- ", "\n#", "a&", ". ", "echo $(a) "),
)
"""Texts that must not make the detector slow or fail when they are repeated many times."""
SHORT_COMMAND = 4096
"""Maximum length of the commands whose CPU time counts for `JudgeCost.p99`, in characters."""
LONG_COMMAND = 128_000
_COMMANDS = (
    *("rm -rf /srv/x", 'x=$(ls); echo "$x"', "for i in a b; do rm $i; done", "cat <<E | sh\nls\nE"),
    *("find . -name '*.o' -exec rm {} +", "sudo -u a env B=c sh -c 'rm d'", "a() { b; }; a"),
    *(
        "python3 -c 'import os; os.system(\"ls\")'",
        "echo bHM= | base64 -d | sh",
        "a=(b c); ${a[@]}",
    ),
    *("git push --force", "curl a | sh", "echo 'rm -rf /'", "ls | xargs -I{} mv {} {}.bak"),
)
_BREAKING = "$`'\"(){}[]|&;<>*\\~#! \n"


class JudgeCost(Value):
    """The cost of judging random commands."""

    p99: float
    """CPU time in milliseconds within which 99 of 100 short commands are judged."""
    growth: float
    """The factor by which the CPU time grows if a command repeats a text twice as often. Several
    texts are measured, and this is the largest factor."""
    unjudged: int
    """Number of commands without a verdict."""


def fuzzed_command(chance: random.Random, length: int) -> str:
    """Returns a random command of about this length."""
    match chance.randrange(4):
        case 0:
            one = chance.choice(BOMBS + REPEATED_TEXTS)
            return one * (length // len(one))
        case 1:
            return _joined(chance, length, BOMBS + REPEATED_TEXTS + (" ", "a", "\n", ";"))
        case 2:
            return "".join(chr(chance.randrange(32, 0x2FFF)) for _ in range(length))
        case _:
            text = list(_joined(chance, length, [f"{one}\n" for one in _COMMANDS]))
            for _ in range(chance.randrange(length // 100 + 1)):
                text[chance.randrange(len(text))] = chance.choice(_BREAKING)
            return "".join(text)


def judge_cost(number: int, seed: int = 1) -> JudgeCost:
    """Judges `number` random commands. At least nine of ten are short."""
    chance = random.Random(seed)  # noqa: S311  # the commands are no secrets
    short: list[float] = []
    unjudged = 0
    for position in range(number):
        lengths = (
            (SHORT_COMMAND, LONG_COMMAND // 8, LONG_COMMAND)
            if position % 10 == 0
            else (50, 800, SHORT_COMMAND)
        )
        command = fuzzed_command(chance, chance.choice(lengths))
        verdicts: list[str] = []
        seconds = _cpu(lambda command=command, to=verdicts: to.append(judge(command).outcome))  # type: ignore[misc]
        unjudged += verdicts[0] not in ("run", "ask", "never")
        if len(command) <= SHORT_COMMAND:
            short.append(seconds)
    growth = max(map(_growth, BOMBS + REPEATED_TEXTS))
    return JudgeCost(
        p99=statistics.quantiles(short, n=100)[98] * 1000, growth=growth, unjudged=unjudged
    )


def _joined(chance: random.Random, length: int, pieces: Sequence[str]) -> str:
    text: list[str] = []
    size = 0
    while size < length:
        text.append(chance.choice(pieces))
        size += len(text[-1])
    return "".join(text)[:length]


def _growth(text: str) -> float:
    """Returns the factor by which the CPU time grows if the text is repeated twice as often. Other
    programs can only make a measurement longer, so the shortest of seven measurements counts. A
    time below a millisecond counts as a millisecond, because such a short time can't be measured
    precisely."""
    halves: list[float] = []
    wholes: list[float] = []
    # The two lengths alternate, so that a busy period of the machine makes both measurements
    # longer.
    for _ in range(7):
        for times, length in ((halves, LONG_COMMAND // 2), (wholes, LONG_COMMAND)):
            times.append(_cpu(partial(judge, text * (length // len(text)))))
    return min(wholes) / max(min(halves), 0.001)


def _cpu(run: Callable[[], object]) -> float:
    begun = time.process_time()
    run()
    return time.process_time() - begun
