"""A test environment for a gateway on Telegram: a fake Bot API, simulated people who write, and
kills of the gateway."""

import re
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from hermes.testing.crash_stage import POLL_SECONDS
from hermes.testing.gateway_process import GatewayProcess, impatient_store
from hermes.testing.loop_delays import read_delays
from hermes.testing.scripted import is_complete
from hermes.testing.stores import open_test_store, stored_rows
from hermes.testing.telegram import BotApiServer
from hermes.testing.telegram_child import CHILD_PROGRAM, DELAYS
from hermes.testing.telegram_records import BotMessage, BotToken
from hermes.types.store import Work
from hermes.types.value import Value

TRIAL_TOKEN: BotToken = "100:trial"  # noqa: S105

_TOKEN = re.compile(r"(?<!\S)q(-?\d+)x(\d+)(?!\S)")


class StoredFreeze(Value):
    """A time during which the Bot API refuses all calls for a chat (a penalty window), as the
    gateway had stored it when the gateway was killed."""

    pid: int
    """The id of the killed process. Later processes must make no call inside this window. The calls
    of the killed process itself are checked against the windows that the answers to its own calls
    announced."""
    chat: str
    until: float


class TelegramStage:
    """A fake server, with a gateway that can be killed and started again. Every message of a person
    contains a token, which the answer repeats."""

    def __init__(self, folder: Path, model_url: str, server: BotApiServer, **more: str) -> None:
        self.folder = folder
        self.server = server
        self.bot = server.add_bot(TRIAL_TOKEN, "trial_bot")
        server.observe = self._note
        self.asked: dict[int, list[str]] = defaultdict(list)
        """Maps each chat to the tokens in its messages, in the order of the messages."""
        self._said: Counter[int] = Counter()
        self.answers: dict[str, list[int]] = defaultdict(list)
        """Maps each token to the ids of the bot's messages that answer it completely."""
        self.freezes: list[StoredFreeze] = []
        self.errors: list[str] = []
        """Lines that the gateway has logged as errors."""
        self.delays: list[tuple[float, float]] = []
        """How late the event loop of the last gateway process woke a sleeping task. Each pair has
        the time of a wake-up, and the seconds by which it was late. `finish` sets this list."""
        self.kills = 0
        self.begun: list[float] = []
        """The times at which the gateway was ready, one time for each of its starts."""
        self._store = impatient_store(folder)
        environ = {
            "TELEGRAM_BOT_TOKEN": TRIAL_TOKEN,
            "TELEGRAM_BASE_URL": server.url,
            "TELEGRAM_ALLOW_ALL_USERS": "true",
            "HERMES_RESTART_DRAIN_TIMEOUT": "0",
            **more,
        }
        self.gateway = GatewayProcess(
            folder, model_url, store=self._store, environ=environ, program=CHILD_PROGRAM
        )

    @property
    def home(self) -> Path:
        return self.folder / ".hermes"

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        """Returns the result of a query on the store of the gateway."""
        return stored_rows(self.folder if self._store else self.home, sql)

    def count(self, where: str) -> int:
        ((found,),) = self.rows(f"select count(*) from {where}")  # noqa: S608
        return int(str(found))

    def say(self, chat: int, text: str = "how are you today") -> str:
        """Makes the person of a private chat write a message that begins with a new token. TOKEN in
        `text` is replaced by this token. Returns the token."""
        if not self._said[chat]:
            self.server.add_chat(chat)
        self._said[chat] += 1
        token = f"q{chat}x{self._said[chat]}"
        self.asked[chat].append(token)
        self.server.says(chat, f"{token} {text.replace('TOKEN', token)}", user=chat)
        return token

    def refuse(self, chat: int, token: str) -> None:
        """Notes that the gateway has refused a message, so that no answer is expected."""
        self.asked[chat].remove(token)

    @property
    def unanswered(self) -> int:
        return sum(map(len, self.asked.values())) - len(self.answers)

    async def answered(self, token: str) -> None:
        await self.until(lambda: token in self.answers)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits until the condition is true. The caller sets the time limit. Fails if the gateway
        has ended by itself."""
        while not condition():
            self.gateway.check_running()
            await anyio.sleep(POLL_SECONDS)

    async def start(self) -> None:
        await self.gateway.start()
        self.begun.append(time.time())

    async def kill(self) -> None:
        """Kills the gateway, and records the chats for which the gateway had paused its calls. A
        gateway pauses its calls for a chat when Telegram refuses them for some time."""
        pid = self.gateway.pid
        self.gateway.check_running()
        await self.gateway.kill()
        self.kills += 1
        self._keep_errors()
        stored = self.rows("select chat_id, until from freezes")
        self.freezes += [
            StoredFreeze(pid=pid, chat=str(chat), until=float(str(until))) for chat, until in stored
        ]

    async def finish(self) -> None:
        """Terminates the gateway, and reads the records that the gateway writes when it ends."""
        self.gateway.check_running()
        await self.gateway.terminate()
        self._keep_errors()
        self.delays = read_delays(self.folder / DELAYS)

    async def forget_offset(self) -> None:
        """Deletes the saved offset from the store, so that the next gateway reads all updates that
        Telegram still has. The gateway must not be running."""
        async with open_test_store(self.folder if self._store else self.home) as store:
            await store.run(_forget_cursors)

    async def quiet(self) -> None:
        """Returns when no work is left in the store."""
        await self.until(lambda: not any(self.unfinished().values()))

    def unfinished(self) -> Mapping[str, int]:
        """Returns the number of unfinished rows of each kind in the store."""
        return {
            "open turns": self.count("turns where state in ('running', 'suspended')"),
            "messages unanswered": self.count("inbox where state <> 'done'"),
            "deliveries owed": self.count("deliveries where state not in ('delivered', 'dead')"),
        }

    def _note(self, message: BotMessage) -> None:
        text = message.shown.text
        if (found := _TOKEN.search(text)) and is_complete(text):
            token = found[0]
            if message.id not in self.answers[token]:
                self.answers[token].append(message.id)

    def _keep_errors(self) -> None:
        self.errors += [line for line in self.gateway.log.splitlines() if " ERROR " in line]


def _forget_cursors() -> Work[None]:
    yield "delete from cursors", ()


@asynccontextmanager
async def telegram_stage(folder: Path, model_url: str, **more: str) -> AsyncIterator[TelegramStage]:
    """Yields a stage whose gateway is not started yet. `more` are environment variables of the
    gateway. The gateway is killed when the block ends."""
    async with BotApiServer().running() as server:
        stage = TelegramStage(folder, model_url, server, **more)
        try:
            yield stage
        finally:
            with anyio.CancelScope(shield=True):
                await stage.gateway.kill()
