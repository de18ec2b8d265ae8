"""The bars: the figures that the benchmark measures, with the limit of each figure."""

from typing import Literal, assert_never

import msgspec

from benchmarks.record import Figure

Kind = Literal["share", "times", "ideal", "at most", "at least", "shown"]


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    measure: str
    """The name of the figure in the table, with its unit."""
    kind: Kind = "shown"
    """The kind of limit. `share` is a minimum and `times` is a maximum; both are relative to the
    figure of the pass-through proxy. `ideal` is a minimum, relative to the figure of the model
    without a gateway. `at most` and `at least` are absolute limits. `shown` means that there is no
    limit."""
    number: float = 0.0
    digits: int = 1
    binding: bool = True
    """Whether the run fails if the figure violates its limit. False for figures that depend on the
    speed of the machine."""

    def holds(self, figure: Figure) -> bool | None:
        """Returns whether the figure is within the limit. Returns None if the bar has no limit, and
        False if the run has not measured the value on which the limit depends."""
        limit = self.limit(figure)
        match self.kind:
            case "share" | "ideal" | "at least":
                return limit is not None and figure.ours >= limit
            case "times" | "at most":
                return limit is not None and figure.ours <= limit
            case "shown":
                return None
            case _:
                assert_never(self.kind)

    def limit(self, figure: Figure) -> float | None:
        """Returns the limit of the figure. Returns None if there is no limit, or if the run has not
        measured the value on which the limit depends."""
        match self.kind:
            case "share" | "times":
                return None if figure.passthrough is None else self.number * figure.passthrough
            case "ideal":
                return None if figure.ideal is None else self.number * figure.ideal
            case "at most" | "at least":
                return self.number
            case "shown":
                return None
            case _:
                assert_never(self.kind)

    def described(self, figure: Figure) -> str:
        limit = self.limit(figure)
        shown = "?" if limit is None else f"{limit:,.{self.digits}f}"
        match self.kind:
            case "share":
                return f"≥ {self.number:.0%} of pass-through ({shown})"
            case "times":
                return f"≤ {self.number:g} × pass-through ({shown})"
            case "ideal":
                return f"≥ {self.number:.0%} of ideal ({shown})"
            case "at most":
                return f"≤ {shown}"
            case "at least":
                return f"≥ {shown}"
            case "shown":
                return ""
            case _:
                assert_never(self.kind)


def _machine(key: str, measure: str, number: float, digits: int = 1) -> Bar:
    """Returns a bar with an upper limit for a figure that depends on the speed of the machine. A
    figure above the limit is shown, but is not counted as a failure."""
    return Bar(
        key=key, measure=measure, kind="at most", number=number, digits=digits, binding=False
    )


def _shown(key: str, measure: str, digits: int = 1) -> Bar:
    return Bar(key=key, measure=measure, digits=digits, binding=False)


def _none(key: str, measure: str) -> Bar:
    """Returns a bar for a figure that must be 0."""
    return Bar(key=key, measure=measure, kind="at most", digits=0)


def _promised(name: str, measure: str, messages: int) -> tuple[Bar, ...]:
    """Returns the bars of a phase in which people send `messages` messages. Each message must be
    answered once and in order."""
    answered = Bar(
        key=f"{name}.answered",
        measure=f"{measure}: answered",
        kind="at least",
        number=messages,
        digits=0,
    )
    return (
        answered,
        _none(f"{name}.twice", f"{measure}: answered twice"),
        _none(f"{name}.order", f"{measure}: answered out of order"),
    )


BARS = (
    _machine("start.healthy", "spawn → healthy, s", 0.5, 2),
    _machine("start.answer", "spawn → first answer, s", 0.7, 2),
    _machine("cli.version", "`hermes --version`, s", 0.12, 3),
    _machine("cli.chat", "`hermes chat -q hello`, s", 0.7, 2),
    _machine("memory.started", "RSS started, MB", 60),
    _machine("memory.used", "RSS after 200 requests, MB", 75),
    _machine("latency.plain", "added latency of a turn, median ms", 3, 2),
    _shown("latency.plain95", "added latency of a turn, p95 ms", 2),
    Bar(
        key="latency.first",
        measure="added time to first token, median ms",
        kind="times",
        number=5,
        digits=2,
    ),
    _shown("latency.first95", "added time to first token, p95 ms", 2),
    Bar(
        key="cpu.plain",
        measure="CPU per turn, c = 1, plain, ms",
        kind="times",
        number=5,
        digits=2,
    ),
    Bar(
        key="cpu.stream",
        measure="CPU per turn, c = 1, streamed, ms",
        kind="times",
        number=5,
        digits=2,
    ),
    _shown("rate.1", "turns/s, c = 1", 0),
    _shown("rate.8", "turns/s, c = 8", 0),
    Bar(key="rate.32", measure="turns/s, c = 32", kind="share", number=0.24, digits=0),
    Bar(key="rate.128", measure="turns/s, c = 128", kind="share", number=0.24, digits=0),
    _shown("cpu.32", "CPU per turn, c = 32, plain, ms", 2),
    Bar(
        key="postgres.stateless",
        measure="turns/s on PostgreSQL beside SQLite, c = 32",
        kind="share",
        number=0.6,
        digits=0,
    ),
    Bar(
        key="postgres.stored",
        measure="new sessions/s on PostgreSQL beside SQLite, c = 32",
        kind="share",
        number=0.6,
        digits=0,
    ),
    _shown("postgres.cpu.stateless", "CPU of the gateway per turn on PostgreSQL, ms", 2),
    _shown("postgres.cpu.stored", "CPU of the gateway per new session on PostgreSQL, ms", 2),
    Bar(
        key="scale.cpu",
        measure="CPU per turn of 4 gateways × 50 turns beside 1 × 50, with PostgreSQL, ms",
        kind="times",
        number=1.3,
        digits=2,
    ),
    Bar(
        key="scale.reruns",
        measure="transactions that were run again, %",
        kind="at most",
        number=1.0,
        digits=2,
    ),
    Bar(
        key="tokens.rate",
        measure="32 streams × 200 tokens, tokens/s",
        kind="share",
        number=0.4,
        digits=0,
    ),
    Bar(
        key="slow.rate",
        measure="1 s model, 64 streams, turns/s",
        kind="ideal",
        number=0.95,
    ),
    _machine("tool.turn", "turn with one read_file, median ms", 10),
    _shown("tool.cpu", "CPU of a turn with one read_file, ms", 2),
    Bar(
        key="prompt.characters",
        measure="prompt of a one-line message, characters",
        kind="at most",
        number=12_000,
        digits=0,
    ),
    _shown("growth.young", "one session, around turn 5, median ms", 2),
    _shown("growth.old", "one session, around turn 245, median ms", 2),
    Bar(
        key="growth.ratio",
        measure="one session, turn 245 / turn 5",
        kind="at most",
        number=1.3,
        digits=2,
    ),
    _shown("growth.cpu", "one session, CPU of turn 245 / turn 5", 2),
    Bar(
        key="crowd.unanswered",
        measure="many conversations on a 1 s model: unanswered",
        kind="at most",
        digits=0,
    ),
    _shown("crowd.open", "many conversations: model calls at the same time, at most", 0),
    _shown("crowd.seconds", "many conversations: all answered after, s", 1),
    Bar(
        key="crowd.threads",
        measure="many conversations: threads",
        kind="at most",
        number=8,
        digits=0,
    ),
    _machine("crowd.memory", "many conversations: RSS, MB", 250),
    _machine("crowd.delay", "many conversations: event-loop delay, p99 ms", 100, 0),
    _shown("crowd.health", "many conversations: GET /health from outside, p99 ms", 0),
    Bar(
        key="sessions.unanswered",
        measure="many stored sessions on a 1 s model: unanswered",
        kind="at most",
        digits=0,
    ),
    _shown("sessions.seconds", "many stored sessions: all answered after, s", 1),
    Bar(
        key="sessions.threads",
        measure="many stored sessions: threads",
        kind="at most",
        number=8,
        digits=0,
    ),
    _machine("sessions.memory", "many stored sessions: RSS, MB", 250),
    _machine("stored.ratio", "turn with 5,000 sessions stored / with none", 1.3, 2),
    _shown("readers.memory", "200 readers that stall: RSS growth, MB", 0),
    _shown("readers.others", "200 readers that stall: other turns, p99 ms", 1),
    Bar(
        key="readers.left",
        measure="200 readers that stall: still held after their time",
        kind="at most",
        digits=0,
    ),
    Bar(
        key="replays.memory",
        measure="200 readers of an 8 MB run: RSS growth, MB",
        kind="at most",
        number=300,
        digits=0,
    ),
    _shown("replays.seconds", "200 readers of an 8 MB run: all done after, s", 1),
    _machine("replays.health", "200 readers of an 8 MB run: GET /health, p99 ms", 500, 0),
    Bar(
        key="slow_replays.memory",
        measure="1,000 slow readers of a 1 MB run: RSS growth, MB",
        kind="at most",
        number=100,
        digits=0,
    ),
    _machine(
        "slow_replays.health", "1,000 slow readers of a 1 MB run: GET /health, p99 ms", 500, 0
    ),
    Bar(
        key="slow_replays.left",
        measure="1,000 slow readers of a 1 MB run: still held after their time",
        kind="at most",
        digits=0,
    ),
    Bar(
        key="slow_answers.memory",
        measure="1,000 slow readers of a plain 1 MB answer: RSS growth, MB",
        kind="at most",
        number=100,
        digits=0,
    ),
    _machine(
        "slow_answers.health", "1,000 slow readers of a plain 1 MB answer: /health, p99 ms", 500, 0
    ),
    Bar(
        key="slow_answers.left",
        measure="1,000 slow readers of a plain 1 MB answer: still held after their time",
        kind="at most",
        digits=0,
    ),
    _machine("uploads.one", "9 MB request, one message: GET /health, slowest ms", 200, 0),
    _machine("uploads.many", "9 MB request, 2,000 messages: GET /health, slowest ms", 200, 0),
    _machine("uploads.session", "9 MB request of a session: GET /health, slowest ms", 200, 0),
    _machine("uploads.one_turns", "9 MB request, one message: other turns, slowest ms", 200, 0),
    _machine("uploads.many_turns", "9 MB request, 2,000 messages: other turns, slowest ms", 200, 0),
    _machine("uploads.session_turns", "9 MB request of a session: other turns, slowest ms", 200, 0),
    Bar(
        key="hostile.memory",
        measure="1 GB bodies, zip bombs and the like: RSS growth, MB",
        kind="at most",
        number=256,
        digits=0,
    ),
    _machine("hostile.seconds", "1 GB bodies, zip bombs and the like: slowest refusal, s", 1, 2),
    Bar(
        key="hostile.wrong",
        measure="1 GB bodies, zip bombs and the like: not refused properly",
        kind="at most",
        digits=0,
    ),
    _machine("timing.t", "time of wrong keys, Welch's t", 4.5, 2),
    Bar(
        key="lasting.memory",
        measure="1,000 slow readers for minutes: RSS growth, MB",
        kind="at most",
        number=100,
        digits=0,
    ),
    _shown("lasting.cuts", "1,000 slow readers for minutes: cut off", 0),
    _machine("lasting.others", "1,000 slow readers for minutes: other turns, p99, times", 2, 2),
    Bar(
        key="lasting.gaps",
        measure="1,000 slow readers for minutes: tokens missing after a resume",
        kind="at most",
        digits=0,
    ),
    _shown("fuzz.requests", "random requests to every route", 0),
    Bar(
        key="fuzz.let_in",
        measure="random requests: accepted without the key",
        kind="at most",
        digits=0,
    ),
    Bar(
        key="fuzz.broken",
        measure="random requests: answered with 5xx",
        kind="at most",
        digits=0,
    ),
    Bar(
        key="fuzz.revoked",
        measure="requests accepted with a revoked key",
        kind="at most",
        digits=0,
    ),
    _shown("keys.different", "random conversations with different session keys", 0),
    _none("keys.collisions", "random conversations that share a session key"),
    _machine("danger.p99", "judging a random command of 4 kB or less, p99 ms", 5, 2),
    Bar(
        key="danger.growth",
        measure="judging a command of twice the length, × CPU time",
        kind="at most",
        number=2.5,
        digits=2,
    ),
    _none("danger.unjudged", "random commands without a verdict"),
    _shown("approvals.decided", "approvals that were decided in random order", 0),
    _none("approvals.swapped", "approvals whose decision took effect on another command"),
    _none("approvals.unasked", "commands like an approved one that ran without a question"),
    _none("approvals.accepted", "decisions of others that were accepted"),
    _none("scripts.before", "approved scripts that ran with a change made before their start"),
    _none("scripts.copied", "approved scripts that were overwritten during their start, and ran"),
    _none("scripts.exchanged", "approved scripts exchanged during their start, which ran"),
    _shown("scripts.local", "approved scripts changed during their start in `local`, ran", 0),
    _shown("killed_approvals.pending", "approvals that were pending at a kill", 0),
    _none("killed_approvals.executed", "approvals at a kill: executed without a decision"),
    _none("killed_approvals.lost", "approvals at a kill: no longer answerable"),
    _none("killed_approvals.twice", "approvals at a kill: executed twice"),
    _shown("sessions.names", "requests with hostile session headers", 0),
    Bar(
        key="sessions.reached",
        measure="hostile session headers: messages in a session with another name",
        kind="at most",
        digits=0,
    ),
    Bar(
        key="sessions.broken",
        measure="hostile session headers: answered with 5xx",
        kind="at most",
        digits=0,
    ),
    Bar(
        key="sessions.conflicts",
        measure="idempotency keys: repeats with a wrong answer",
        kind="at most",
        digits=0,
    ),
    _shown("soak.turns", "soak: turns", 0),
    _shown("soak.attacks", "soak: attacks", 0),
    _shown("soak.kills", "soak: kills", 0),
    Bar(key="soak.unanswered", measure="soak: requests without a complete answer", kind="at most"),
    Bar(key="soak.rss", measure="soak: RSS growth, MB", kind="at most", number=15, digits=1),
    Bar(key="soak.descriptors", measure="soak: growth of descriptors", kind="at most", number=10),
    Bar(key="soak.threads", measure="soak: growth of threads", kind="at most", number=1),
    _machine("sandbox.command", "command in the sandbox: added time, median ms", 30),
    _machine("sandbox.cpu", "command in the sandbox: added CPU time, ms", 20),
    _machine("limits.ended", "attacks on the limits of the sandbox: slowest end, s", 1, 2),
    _machine("limits.health", "attacks on the limits of the sandbox: GET /health, p99 ms", 500, 0),
    _shown("limits.calm", "GET /health before these attacks, p99 ms", 0),
    _shown("races.tries", "file tools while links are exchanged: tries", 0),
    _none("races.escapes", "file tools while links are exchanged: escapes"),
    _machine("install.seconds", "install of the core, s", 15, 0),
    _machine("install.packages", "packages of the core", 35, 0),
    _machine("install.size", "size of the core, MB", 75, 0),
    *_promised("waiting", "messages that waited while the gateway was down", 500),
    _shown("waiting.seconds", "messages that waited: all answered after, s"),
    *_promised("repeats", "updates that are delivered three times", 2000),
    _none("repeats.surplus", "updates that are delivered three times: turns too many or too few"),
    *_promised("outage", "replies owed during an outage", 2000),
    _shown("outage.owed", "replies owed at the end of the outage", 0),
    Bar(
        key="outage.seconds",
        measure="replies owed during an outage: delivered after the recovery, s",
        kind="at most",
        number=60,
    ),
    *_promised("ordered", "200 chats × 50 messages with kills", 10_000),
    _none("ordered.overlap", "200 chats × 50 messages with kills: overlapping turns"),
    _shown("burst.accepted", "10,000 messages in 10 s: accepted", 0),
    _shown("burst.answered", "10,000 messages in 10 s: answered", 0),
    _none("burst.unanswered", "10,000 messages in 10 s: accepted and not answered"),
    _none("burst.twice", "10,000 messages in 10 s: answered twice"),
    _none("burst.order", "10,000 messages in 10 s: answered out of order"),
    _none("burst.lost", "10,000 messages in 10 s: neither accepted nor refused"),
    _shown("burst.seconds", "10,000 messages in 10 s: all answered after, s"),
    Bar(
        key="burst.memory",
        measure="10,000 messages in 10 s: peak RSS, MB",
        kind="at most",
        number=400,
        digits=0,
    ),
    _machine("burst.p99", "10,000 messages in 10 s: time to accept, p99 ms", 250, 0),
    _machine("burst.delay", "10,000 messages in 10 s: event-loop delay, p99 ms", 100, 0),
    Bar(key="errors", measure="incomplete answers", kind="at most", digits=0),
)
