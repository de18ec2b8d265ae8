"""Puts load on one target, and measures the answers."""

import asyncio
import math
import statistics
import time
from collections.abc import Iterator

import msgspec

from benchmarks.client import SAMPLE, Answer, Client, encode
from benchmarks.processes import Others, Tree

PATH = "/v1/chat/completions"
SESSION_HEADER = "X-Hermes-Session-Id"


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


def median(values: list[float]) -> float:
    return statistics.median(values) if values else math.nan


class Target:
    """A server for chat completions that is measured: the model itself, the pass-through proxy, or
    our gateway."""

    def __init__(self, name: str, port: int, model: str, key: str, tree: Tree) -> None:
        self.name = name
        self.port = port
        self.tree = tree
        self._model = model
        self._headers = {"Authorization": f"Bearer {key}"}
        self._asked = 0

    def request(self, *, stream: bool = False, session: str = "", text: str = "") -> bytes:
        """Returns an HTTP request with one message of a user. The request is stateless if `session`
        is empty. If `text` is empty, each request gets a different text."""
        self._asked += 1
        content = text or f"Hello, this is line {self._asked}."
        body = {
            "model": self._model,
            "stream": stream,
            "messages": [{"role": "user", "content": content}],
        }
        headers = {**self._headers, SESSION_HEADER: session} if session else self._headers
        return encode("POST", PATH, headers, msgspec.json.encode(body))


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The amount of load: `count` requests, for at most `seconds`."""

    count: int
    concurrency: int = 1
    seconds: float = 30.0
    stream: bool = False
    sessions: str = ""
    """If given, every request begins a stored session, named with this prefix and a number."""
    patience: float = 60.0


class Load:
    """The answers to a load of requests, with the total time and the total CPU time that they
    took."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self.good: list[Answer] = []
        self.bad: list[Answer] = []
        self.wall = 0.0
        self.cpu = 0.0
        self.others = 0.0
        """Seconds of CPU time that other processes of the machine used during the load."""

    def add(self, answer: Answer) -> None:
        if answer.good(self._tokens):
            answer.body = b""
            self.good.append(answer)
        else:
            answer.body = answer.body[:SAMPLE]
            self.bad.append(answer)

    def join(self, other: "Load") -> None:
        self.good += other.good
        self.bad += other.bad
        self.wall += other.wall
        self.cpu += other.cpu
        self.others += other.others

    @property
    def rate(self) -> float:
        """Turns per second."""
        return len(self.good) / self.wall

    @property
    def tokens_rate(self) -> float:
        """Tokens per second."""
        return sum(answer.tokens for answer in self.good) / self.wall

    @property
    def totals(self) -> list[float]:
        """The duration of each turn in milliseconds."""
        return [answer.total * 1000 for answer in self.good]

    @property
    def firsts(self) -> list[float]:
        """The time to the first token of each turn, in milliseconds."""
        return [answer.first * 1000 for answer in self.good]

    @property
    def cpu_each(self) -> float:
        """Milliseconds of CPU per turn."""
        return self.cpu * 1000 / max(1, len(self.good))


async def ask_much(target: Target, plan: Plan, tokens: int) -> Load:
    """Sends the requests of the plan to the target. An answer counts as good if it has status 200
    and `tokens` tokens."""
    done, numbers = Load(tokens), iter(range(plan.count))
    others, cpu, began = Others(), target.tree.cpu(), time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(min(plan.concurrency, plan.count)):
            group.create_task(_work(target, plan, numbers, began + plan.seconds, done))
    done.wall = time.perf_counter() - began
    done.cpu = target.tree.cpu() - cpu
    done.others = others.seconds()
    return done


async def _work(target: Target, plan: Plan, numbers: Iterator[int], end: float, done: Load) -> None:
    client = Client(target.port)
    try:
        for number in numbers:
            if time.perf_counter() > end:
                break
            session = f"{plan.sessions}-{number}" if plan.sessions else ""
            request = target.request(stream=plan.stream, session=session)
            done.add(await client.ask(request, plan.patience))
    finally:
        client.close()
