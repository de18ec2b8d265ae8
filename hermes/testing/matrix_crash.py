"""Kills the gateway and restarts the homeserver while a person writes in Matrix rooms. Checks that
the person sees one answer to each message, in order.

- `python -m hermes.testing.matrix_crash` sends 10 messages in each of 20 rooms, with 5 kills and a
  restart of Synapse.
- With `--rooms 4 --messages 5 --kills 2`, the run is shorter.
- With `--store postgres`, the gateway uses PostgreSQL.
"""

import itertools
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import click

from hermes.control.sending import REPEAT
from hermes.testing.crash import use_store
from hermes.testing.gateway_process import GatewayProcess, impatient_store
from hermes.testing.model import FakeModel
from hermes.testing.scripted import is_complete
from hermes.testing.synapse import MatrixUser, SynapseProcess
from hermes.types.value import Value

_POLL_SECONDS = 0.05
_RETRY_SECONDS = 0.2
_TEXTS = ("{} how are you today", "{} tokens:18 delay:0.02")
"""The messages; `{}` is a word that no other message contains. The fake model quotes this word in
its answer. The second message makes the fake model write slowly."""
_WAITING = 0.5
"""The probability that the person waits for the answer before the next message in a room."""


class TrialSize(Value):
    """The number of rooms, messages and disturbances in a run."""

    rooms: int = 20
    messages: int = 10
    """Number of messages in each room."""
    kills: int = 5
    restarts: int = 1
    """Number of restarts of the homeserver."""
    seed: int = 0


class Conversation:
    """The messages in a room with the agent, as the person sees them."""

    def __init__(self, room: str) -> None:
        self.room = room
        self.sent: list[str] = []
        """The first words of the person's messages, in order."""
        self.shown: dict[str, str] = {}
        """The current texts of the agent's messages by event id, in the order of the messages."""

    def read(self, event: dict[str, Any]) -> None:
        """Updates `shown` if the event is a message or an edit of the agent. Ignores other
        events."""
        content = event["content"]
        relation = content.get("m.relates_to", {})
        if relation.get("rel_type") == "m.replace":
            self.shown[relation["event_id"]] = content["m.new_content"]["body"]
        else:
            self.shown[event["event_id"]] = content["body"]

    def answers(self) -> list[str]:
        """Returns the words of `sent` that the answers quote, in the order of the answers.
        Incomplete answers are ignored."""
        complete = [text for text in self.shown.values() if is_complete(text)]
        return [word for text in complete for word in self.sent if word in text.split()]

    def violations(self) -> list[str]:
        found = Counter(answers := self.answers())
        lost = [word for word in self.sent if not found[word]]
        repeated = [word for word in self.sent if found[word] > 1]
        marked = [text for text in self.shown.values() if REPEAT.strip() in text]
        problems = {
            f"not answered: {lost}": lost,
            f"answered more than once: {repeated}": repeated,
            f"marked as a repeat: {marked}": marked,
            f"not in order: {answers}": not lost and not repeated and answers != self.sent,
        }
        return [f"{self.room}: {problem}" for problem, found in problems.items() if found]


class MatrixTrial:
    """A person writes in many rooms while the gateway process is killed and the homeserver is
    restarted."""

    def __init__(self, plan: TrialSize, server: SynapseProcess, gateway: GatewayProcess) -> None:
        self._plan = plan
        self._server = server
        self._gateway = gateway
        self._random = random.Random(plan.seed)  # noqa: S311
        self._words = (f"q{number}" for number in itertools.count(1))
        self.conversations: dict[str, Conversation] = {}
        self.kills = self.restarts = self.edits = 0

    @property
    def sent(self) -> int:
        return sum(len(one.sent) for one in self.conversations.values())

    @property
    def answered(self) -> int:
        return sum(len(set(one.answers())) for one in self.conversations.values())

    async def play(self, person: MatrixUser, bot: MatrixUser, seconds: float) -> list[str]:
        """Runs the trial for at most `seconds`. Returns a text for each violated promise."""
        try:
            await self._gateway.start()
            with anyio.move_on_after(seconds) as scope:
                await self._run(person, bot)
            late = [f"not finished in {seconds:.0f} s:\n{self._gateway.log}"]
        finally:
            with anyio.CancelScope(shield=True), suppress(ProcessLookupError):
                await self._gateway.kill()
        found = [each for one in self.conversations.values() for each in one.violations()]
        return late + found if scope.cancelled_caught else found

    async def _run(self, person: MatrixUser, bot: MatrixUser) -> None:
        """Runs until every message is answered, and then for one more second, in which a repeated
        answer would be seen."""
        for _ in range(self._plan.rooms):
            room = await anyio.to_thread.run_sync(person.create_room, bot)
            self.conversations[room] = Conversation(room)
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch, person, bot)
            await self._until(partial(self._joined, bot))
            group.start_soon(self._disturb)
            for one in self.conversations.values():
                group.start_soon(self._talk, person, one)
            await self._until(self._all_answered)
            await anyio.sleep(1.0)
            group.cancel_scope.cancel()

    def _joined(self, bot: MatrixUser) -> bool:
        return len(bot.call("GET", "joined_rooms")["joined_rooms"]) == self._plan.rooms

    def _all_answered(self) -> bool:
        plan = self._plan
        done = (self.kills, self.restarts) == (plan.kills, plan.restarts)
        return done and self.answered == plan.rooms * plan.messages

    async def _until(self, condition: Callable[[], bool]) -> None:
        """Polls the condition. The caller sets the deadline."""
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(_POLL_SECONDS)

    async def _call(self, person: MatrixUser, *path: str, body: object = None, **query: str) -> Any:
        """Calls the homeserver. Repeats the call while the homeserver is down."""
        method = "GET" if body is None else "PUT"
        while True:
            with suppress(OSError):
                call = partial(person.call, method, *path, body=body, **query)
                return await anyio.to_thread.run_sync(call)
            await anyio.sleep(_RETRY_SECONDS)

    async def _watch(self, person: MatrixUser, bot: MatrixUser) -> None:
        """Reads the agent's messages in all rooms with syncs. The first sync may leave out older
        events of a room, so it is used only to get a token for the next sync."""
        token = (await self._call(person, "sync", timeout="0"))["next_batch"]
        limit = '{"room": {"timeline": {"limit": 10000}}}'
        while True:
            options = {"since": token, "timeout": "1000", "filter": limit}
            batch = await self._call(person, "sync", **options)
            token = batch["next_batch"]
            for room, news in batch.get("rooms", {}).get("join", {}).items():
                for event in news["timeline"]["events"]:
                    if event["type"] == "m.room.message" and event["sender"] == bot.id:
                        self.edits += "m.new_content" in event["content"]
                        self.conversations[room].read(event)

    async def _talk(self, person: MatrixUser, one: Conversation) -> None:
        for number in range(self._plan.messages):
            await self._until(partial(self._unlocked, number))
            word = next(self._words)
            one.sent.append(word)
            text = self._random.choice(_TEXTS).format(word)
            body = {"msgtype": "m.text", "body": text}
            await self._call(person, "rooms", one.room, "send", "m.room.message", word, body=body)
            if self._random.random() < _WAITING:
                await self._until(lambda word=word: word in one.answers())  # type: ignore[misc]

    def _unlocked(self, number: int) -> bool:
        """Returns whether message `number` of each room may be sent now. After each disturbance (a
        kill or a restart), more messages may be sent, so that every disturbance interrupts work."""
        disturbances = self._plan.kills + self._plan.restarts
        share = (self.kills + self.restarts + 1) / (disturbances + 1)
        return number < self._plan.messages * share

    async def _disturb(self) -> None:
        """Kills the gateway and restarts the homeserver, each while messages are being answered."""
        disturbances = ["kill"] * self._plan.kills + ["restart"] * self._plan.restarts
        self._random.shuffle(disturbances)
        total = self._plan.rooms * self._plan.messages
        for number, kind in enumerate(disturbances):
            least = total * (number + self._random.random()) / (len(disturbances) + 1)
            await self._until(lambda least=least: self.sent >= least)  # type: ignore[misc]
            await anyio.sleep(self._random.uniform(0.0, 1.0))
            if kind == "kill":
                log = self._gateway.log
                try:
                    await self._gateway.kill()
                except ProcessLookupError as error:
                    raise AssertionError(
                        f"the gateway ended before it was killed:\n{log}"
                    ) from error
                await self._gateway.start()
                self.kills += 1
            else:
                self._server.stop()
                self._server.launch()
                await anyio.to_thread.run_sync(self._server.wait)
                self.restarts += 1


async def play(plan: TrialSize, seconds: float) -> bool:
    """Runs a trial of this size and prints a report. Returns whether every message was answered
    once and in order."""
    since = time.monotonic()
    server = SynapseProcess()
    with tempfile.TemporaryDirectory(prefix="hermes-") as folder:
        try:
            server.start()
            person, bot = server.register("ann"), server.register("hermes")
            environ = {
                "MATRIX_HOMESERVER": server.url,
                "MATRIX_USER": bot.id,
                "MATRIX_PASSWORD": "hermes",
                "MATRIX_ALLOWED_USERS": person.id,
            }
            async with FakeModel() as model:
                home = Path(folder)
                store = impatient_store(home)
                gateway = GatewayProcess(home, model.base_url, store=store, environ=environ)
                trial = MatrixTrial(plan, server, gateway)
                violations = await trial.play(person, bot, seconds)
        finally:
            server.remove()
    click.echo(
        f"seed {plan.seed}, {time.monotonic() - since:.0f} s: {len(trial.conversations)} rooms,"
        f" {trial.sent} messages, {trial.answered} answered, {trial.edits} edits,"
        f" {trial.kills} kills, {trial.restarts} restarts of Synapse"
    )
    for violation in violations:
        click.echo(f"VIOLATED {violation}")
    return not violations


@click.command(help=__doc__)
@click.option("--rooms", default=20)
@click.option("--messages", default=10, help="in each room")
@click.option("--kills", default=5)
@click.option("--restarts", default=1, help="of the homeserver")
@click.option("--seed", type=int, help="random by default")
@click.option("--seconds", default=600.0, help="maximum time for the whole run")
@click.option(
    "--store",
    type=click.Choice(["sqlite", "postgres"]),
    default="sqlite",
    expose_value=False,
    callback=use_store,
)
def main(
    rooms: int, messages: int, kills: int, restarts: int, seed: int | None, seconds: float
) -> None:
    seed = random.randrange(1 << 16) if seed is None else seed  # noqa: S311
    plan = TrialSize(rooms=rooms, messages=messages, kills=kills, restarts=restarts, seed=seed)
    click.get_current_context().exit(0 if anyio.run(play, plan, seconds) else 1)


if __name__ == "__main__":
    main()
