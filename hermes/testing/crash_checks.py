"""Checks the promises that no kill may break, by reading the chats and the store."""

import contextlib
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import aiohttp
import msgspec

from hermes.control.sending import REPEAT
from hermes.core.tools.call import UNKNOWN_OUTCOME
from hermes.streaming.edits import PLACEHOLDER
from hermes.streaming.policy import StreamingPolicy
from hermes.testing.crash_child import APPENDED, SPAWNED, log_file
from hermes.testing.crash_stage import POLL_SECONDS, Sent, Stage
from hermes.testing.model import Stats
from hermes.testing.platforms import Shown
from hermes.testing.scripted import mixes_calls
from hermes.testing.stores import store_url, stored_rows

_TAG = re.compile(r"\[[0-9a-f]{4}:\d+(?:\.\d+)?\]\s*")
UNKNOWN = UNKNOWN_OUTCOME.partition(":")[0]
LAST_PROCESS_SECONDS = 5.0
"""Seconds within which the processes of commands must end after their gateway has ended."""
_UNFINISHED = (PLACEHOLDER, StreamingPolicy().cursor)


class Report:
    def __init__(self) -> None:
        self.violations: list[str] = []
        self.figures: Counter[str] = Counter()


def check(stage: Stage) -> Report:
    """Returns a report that lists everything that went wrong, such as a lost answer or unfinished
    work. Call this function after the gateway has ended."""
    report = Report()
    report.figures["messages"] = len(stage.sent)
    report.figures["kills"] = stage.deaths[-9]
    checks: list[Callable[[Stage, Report], Iterator[str]]] = [
        _answers,
        _order,
        _shown,
        _commands,
        _tokens,
        _exchanges,
        _store,
        _processes,
        _logs,
    ]
    for one in checks:
        report.violations += one(stage, report)
    for kind in ("lost", "twice", "mixed"):
        found = [violation for violation in report.violations if violation.startswith(f"{kind}:")]
        report.figures[kind] = len(found)
    return report


async def refused(model: str) -> list[str]:
    """Returns the requests that the model has refused since it started, such as a request whose
    history has a tool call without a result."""
    url = f"{model.removesuffix('/v1')}/_stats"
    async with aiohttp.ClientSession() as http, http.get(url) as response:
        stats = msgspec.json.decode(await response.read(), type=Stats)
    return [f"the model refused {times} times: {why}" for why, times in stats.refused.items()]


def _standing(stage: Stage, sent: Sent) -> list[Shown]:
    """Returns the complete answers to the message `sent`, as its chat shows them now."""
    shown = stage.rooms[sent.account].shown(sent.chat)
    return [one for one in shown if sent.answered_by(one.text)]


def _answers(stage: Stage, report: Report) -> Iterator[str]:
    for sent in stage.sent:
        where = f"{sent.kind} {sent.token} in {sent.account} {sent.chat}"
        standing = _standing(stage, sent)
        if not standing:
            yield f"lost: no answer to {where}"
        more = standing[1:]
        if sent.account == "editing" and more:
            yield f"twice: {1 + len(more)} whole answers to {where}"
        for again in more:
            if sent.account == "plain" and not again.text.startswith(REPEAT):
                yield f"unmarked: a repeat for {where}"


def _order(stage: Stage, report: Report) -> Iterator[str]:
    last: dict[tuple[str, str], tuple[int, str]] = {}
    for sent in stage.sent:
        for first in _standing(stage, sent)[:1]:
            place = int(first.id.removeprefix("m"))
            before, token = last.get((sent.account, sent.chat), (0, ""))
            if place < before:
                yield f"order: {sent.token} is answered above {token} in {sent.account} {sent.chat}"
            last[sent.account, sent.chat] = (place, sent.token)


def _shown(stage: Stage, report: Report) -> Iterator[str]:
    count = "select account, count(*) from deliveries group by account"
    owed = {str(account): int(number) for account, number in stored_rows(stage.home, count)}
    for account, server in stage.rooms.items():
        whole = 0
        for shown in server.messages.values():
            orphan = account == "editing" and shown.text.endswith(_UNFINISHED)
            marked = shown.text.startswith(REPEAT)
            report.figures["orphaned previews"] += orphan
            report.figures["re-sends, marked"] += marked
            whole += not orphan and not marked
            for text in shown.versions:
                if mixes_calls(text):
                    yield f"mixed: {account} showed {text!r}"
        if whole > owed.get(account, 0):
            yield f"{account} shows {whole} unmarked messages for {owed.get(account, 0)} owed"


def _commands(stage: Stage, report: Report) -> Iterator[str]:
    """Checks that no command ran twice, and that the files of the commands still exist."""
    sandboxes = stage.home.glob(f"sandboxes/sandbox/*/workspace/*{SPAWNED}")
    found = [*(stage.home / "workspace").glob(f"*{SPAWNED}"), *sandboxes]
    written = Counter(word for one in found for word in one.read_text().split())
    report.figures["commands that wrote"] += written.total()
    if not written and any(one["fail_at"].startswith("in spawn") for one in stage.armed.values()):
        yield "lost: the file of a command that was killed with its gateway"
    for token, times in written.items():
        if times > 1:
            yield f"twice: the command of {token} ran {times} times"
    for sent in stage.sent:
        for shown in _standing(stage, sent) if sent.kind == "spawn" else ():
            told = re.search(r"ended, wrote ([q\d ]+)", shown.text)
            for token in told[1].split() if told else ():
                if not written[token]:
                    yield f"lost: the file that the command of {token} wrote"


def _tokens(stage: Stage, report: Report) -> Iterator[str]:
    path = stage.home / "workspace" / APPENDED
    written = Counter(path.read_text().split() if path.exists() else ())
    for sent in stage.sent:
        if sent.kind not in ("append", "both", "spawn"):
            continue
        answers = [_TAG.sub("", one.text) for one in _standing(stage, sent)]
        unknown = any(UNKNOWN in text for text in answers)
        report.figures["outcomes unknown"] += unknown
        if sent.kind == "spawn":
            continue
        if written[sent.token] > 1:
            yield f"{sent.token} was appended {written[sent.token]} times"
        done = any(f"appended {sent.token}" in text for text in answers)
        if answers and not unknown and not (done and written[sent.token]):
            yield f"{sent.token}: the model was told {'it was' if done else 'nothing'}, not so"


def _exchanges(stage: Stage, report: Report) -> Iterator[str]:
    path = stage.home / "workspace" / APPENDED
    written = Counter(path.read_text().split() if path.exists() else ())
    for exchange in stage.exchanges:
        token, answer = exchange.token, _TAG.sub("", exchange.answer)
        told = answer.count(f"looked {token} look"), answer.count(f"appended {token}")
        unknown = answer.count(UNKNOWN)
        report.figures["outcomes unknown"] += unknown
        if told[0] != 2 or exchange.results != 2:
            yield f"lost: the model was told {told[0]} of {exchange.results} results of {token}"
        if told[1] + unknown != 2:
            yield f"lost: the model was told {told[1]} of 2 appended {token}"
        if not told[1] <= written[token] <= 2:
            yield f"twice: {token} was appended {written[token]} times"
        if mixes_calls(exchange.answer):
            yield f"mixed: the API answered {exchange.answer!r}"


def _store(stage: Stage, report: Report) -> Iterator[str]:
    for what, count in stage.unfinished().items():
        if count:
            yield f"{count} {what}"
    if not store_url(stage.home):
        ((found,),) = stored_rows(stage.home, "pragma integrity_check")
        if found != "ok":
            yield f"the store is damaged: {found}"
    turns, asked = stage.count("turns"), len(stage.sent) + len(stage.exchanges)
    if turns != asked:
        yield f"{turns} turns for {asked} messages"
    dead = "select account, error from deliveries where state = 'dead'"
    for account, error in stored_rows(stage.home, dead):
        yield f"a delivery to {account} was given up: {error}"


def _processes(stage: Stage, report: Report) -> Iterator[str]:
    # A supervisor ends by itself, but a moment after its gateway. So this function waits.
    deadline = time.monotonic() + LAST_PROCESS_SECONDS
    while (running := _running_in(stage.home)) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    for pid, where in running:
        yield f"process {pid} still runs in {where}"
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _running_in(home: Path) -> list[tuple[int, Path]]:
    found = []
    for process in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            where = process.readlink()
            if where.is_relative_to(home):
                found.append((int(process.parent.name), where))
    return found


def _logs(stage: Stage, report: Report) -> Iterator[str]:
    for code, count in stage.deaths.items():
        if code != -9:
            yield f"the gateway ended by itself {count} times with {code}"
    entries = re.split(r"\n(?=\d{4}-\d\d-\d\d )", log_file(stage.home).read_text().strip())
    for entry in [entry for entry in entries if " ERROR " in entry][:3]:
        first, *rest = entry.splitlines()
        yield f"logged: {first} {rest[-1] if rest else ''}"
