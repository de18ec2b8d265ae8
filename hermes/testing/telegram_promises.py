"""The promises to people on Telegram that no kill and no failure may break."""

from collections import defaultdict
from collections.abc import Callable, Iterator

from hermes.streaming.edits import PLACEHOLDER
from hermes.streaming.policy import StreamingPolicy
from hermes.testing.crash_checks import Report
from hermes.testing.scripted import mixes_calls
from hermes.testing.telegram_child import (
    CALLS,
    PAUSES,
    CallRecord,
    PauseRecord,
    read_records,
)
from hermes.testing.telegram_stage import StoredFreeze, TelegramStage

QUEUED = "Queued ("
"""The beginning of the notice that tells a person that their message waits in the queue."""
_UNFINISHED = (PLACEHOLDER, StreamingPolicy().cursor)


def check_promises(stage: TelegramStage) -> Report:
    """Returns a report with all broken promises. Call this function after the gateway has finished
    all work."""
    report = Report()
    report.figures["messages"] = sum(map(len, stage.asked.values()))
    report.figures["kills"] = stage.kills
    report.figures["calls"] = len(stage.server.calls)
    checks: list[Callable[[TelegramStage, Report], Iterator[str]]] = [
        _answers,
        _order,
        _texts,
        _penalties,
        _overlaps,
        _store,
    ]
    for check in checks:
        report.violations += check(stage, report)
    report.violations += [f"logged: {line}" for line in stage.errors[:3]]
    for kind in ("lost", "twice", "order", "early", "overlap"):
        found = [violation for violation in report.violations if violation.startswith(f"{kind}:")]
        report.figures[kind] = len(found)
    return report


def _answers(stage: TelegramStage, report: Report) -> Iterator[str]:
    for chat, tokens in stage.asked.items():
        for token in tokens:
            count = len(stage.answers.get(token, ()))
            if not count:
                yield f"lost: no complete answer to {token} in {chat}"
            if count > 1:
                yield f"twice: {count} complete answers to {token} in {chat}"


def _order(stage: TelegramStage, report: Report) -> Iterator[str]:
    for tokens in stage.asked.values():
        last, before = 0, ""
        for token in tokens:
            for place in stage.answers.get(token, ())[:1]:
                if place < last:
                    yield f"order: {token} is answered above {before}"
                last, before = place, token


def _texts(stage: TelegramStage, report: Report) -> Iterator[str]:
    complete = {id for ids in stage.answers.values() for id in ids}
    for message in stage.server.messages.values():
        text = message.shown.text
        if text.startswith(QUEUED):
            report.figures["notices"] += 1
        elif text.endswith(_UNFINISHED):
            report.figures["orphaned previews"] += 1
        elif message.id not in complete:
            yield f"incomplete: the chat {message.chat} shows {text!r}"
        for text in message.versions:
            if mixes_calls(text):
                yield f"mixed: the chat {message.chat} showed {text!r}"


def _penalties(stage: TelegramStage, report: Report) -> Iterator[str]:
    records = read_records(stage.folder / CALLS, CallRecord)
    report.figures["answers 429"] = sum(1 for one in records if one.until)
    yield from early_calls(records, stage.freezes)


def early_calls(records: list[CallRecord], freezes: list[StoredFreeze]) -> Iterator[str]:
    """Yields a text for each call that a gateway started inside a penalty window, although the
    gateway knew of the window.

    A process knows the windows that the answers to its own calls announced, and the windows that
    were in the store when an earlier process was killed. A call is left out if it started before
    the gateway received the answer with status 429 that announced the window.
    """
    told: dict[tuple[int, str], float] = defaultdict(float)
    first = {one.pid: place for place, one in reversed(list(enumerate(records)))}
    for place, one in enumerate(records):
        key = (one.pid, one.chat)
        if one.until:
            told[key] = max(told[key], one.until)
            continue
        stored = [
            freeze.until
            for freeze in freezes
            if freeze.chat == one.chat and first.get(freeze.pid, place) < first[one.pid]
        ]
        rest = max(told[key], *stored, 0.0) - one.at
        if rest > 0:
            yield f"early: a call for {one.chat} came {rest:.2f} s before the window's end"


def _overlaps(stage: TelegramStage, report: Report) -> Iterator[str]:
    yield from overlaps(read_records(stage.folder / PAUSES, PauseRecord))


def overlaps(records: list[PauseRecord]) -> Iterator[str]:
    """Yields a text for each turn that began while another turn of the same chat ran in the same
    process."""
    running: dict[tuple[int, str], set[str]] = defaultdict(set)
    for one in records:
        here = running[one.pid, one.token.partition("x")[0]]
        if one.ended:
            here.discard(one.token)
            continue
        if here - {one.token}:
            yield f"overlap: {one.token} began while {sorted(here)} ran"
        here.add(one.token)


def _store(stage: TelegramStage, report: Report) -> Iterator[str]:
    for what, count in stage.unfinished().items():
        if count:
            yield f"{count} {what}"
    turns, asked = stage.count("turns"), report.figures["messages"]
    if turns != asked:
        yield f"{turns} turns for {asked} messages"
    for (error,) in stage.rows("select error from deliveries where state = 'dead'"):
        yield f"a delivery was given up: {error}"


def report_lines(report: Report) -> list[str]:
    """Returns the figures and the violations, for people."""
    figures = [f"{what:>28}  {figure}" for what, figure in report.figures.items()]
    return [*figures, *(f"VIOLATED {violation}" for violation in report.violations[:30])]
