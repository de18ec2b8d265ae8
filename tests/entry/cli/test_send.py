"""The command `hermes send` sends messages through a running gateway, or queues them."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio.lowlevel
import anyio.to_thread
import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from hermes.app.application import Application
from hermes.entry.cli.main import cli
from hermes.entry.platforms.telegram.adapter import TelegramAdapter
from hermes.entry.platforms.telegram.manifest import TelegramConfig
from hermes.settings.sections import AccessSettings
from hermes.state.paths import Home
from hermes.testing.running import QUIET, running, until, until_rows
from hermes.testing.scripted import ScriptedModel, says
from hermes.testing.telegram import BotApiServer
from hermes.types.deployment import RunningGateway

TOKEN = "100:secret-token"
PERSON, GROUP = 7, -1001


def hermes(home: Path, *args: str, given: str = "", **variables: str) -> Result:
    environ = {"HERMES_HOME": str(home), "TELEGRAM_BOT_TOKEN": TOKEN, **variables}
    return CliRunner(env=environ).invoke(cli, ["send", *args], obj=Application(), input=given)


async def sends(home: Path, *args: str, given: str = "", **variables: str) -> Result:
    """Runs `hermes send` in a thread, so that the gateway in the test's event loop can send the
    message meanwhile."""
    return await anyio.to_thread.run_sync(partial(hermes, home, *args, given=given, **variables))


ADMINISTERED = replace(QUIET, access=AccessSettings(allow_all=True, admins=(f"telegram:{PERSON}",)))


@asynccontextmanager
async def telegram(home: Path, *answers: str) -> AsyncIterator[BotApiServer]:
    """Runs a gateway with a bot on a fake Telegram server. The model gives these answers."""
    async with BotApiServer().running() as server:
        server.add_bot(TOKEN, "our_bot")
        server.add_chat(PERSON)
        server.add_chat(GROUP, "supergroup", title="Build log", topics=(17,))
        adapter = TelegramAdapter("telegram", TelegramConfig(token=TOKEN, base_url=server.url))
        model = ScriptedModel([says(text) for text in answers])
        place = Home(root=home)
        place.ensure()
        with Application().register_gateway(place.run) as registration:
            registration.write(RunningGateway(pid=os.getpid()))
            async with running(home, [adapter], model, ADMINISTERED) as gateway:
                await until_rows(gateway._store, "select 1 from leases")
                yield server


async def test_a_message_of_another_process_is_sent_by_the_gateway(tmp_path: Path) -> None:
    async with telegram(tmp_path) as server:
        done = await sends(tmp_path, "telegram:7", "The **backup** is done.")
        assert done.output == "delivered to telegram:7\n"
        assert done.exit_code == 0
    (message,) = server.messages.values()
    assert message.source == "The <b>backup</b> is done."


async def test_a_text_from_stdin_and_files_are_sent_to_a_topic(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("report.pdf", "notes.txt")]
    for path in paths:
        path.write_text(f"content of {path.name}")
    files = [argument for path in paths for argument in ("--file", str(path))]
    async with telegram(tmp_path) as server:
        done = await sends(tmp_path, "telegram:-1001:17", "-", *files, "--json", given="Done\n")
    assert json.loads(done.output) == {
        "target": "telegram:-1001:17",
        "state": "delivered",
        "reason": "",
        "mirrored": False,
    }
    found = [(one.thread, one.file or one.shown.text) for one in server.messages.values()]
    assert found == [(17, "Done"), (17, "report.pdf"), (17, "notes.txt")]


async def test_a_chat_is_named_by_its_name_after_it_has_written(tmp_path: Path) -> None:
    async with telegram(tmp_path, "hello") as server:
        server.says(GROUP, "@our_bot hi", entities=[{"type": "mention", "offset": 0, "length": 8}])
        await until(lambda: server.texts(GROUP) == ["hello"])
        done = await sends(tmp_path, "telegram:build LOG", "It works.")
        assert done.output == "delivered to telegram:-1001\n"
        listed = await sends(tmp_path, "--list", "--json", TELEGRAM_HOME_CHANNEL="7")
        table = await sends(tmp_path, "--list", TELEGRAM_HOME_CHANNEL="7")
        wrong = await sends(tmp_path, "telegram:Build lgo", "It works.")
    assert server.texts(GROUP) == ["hello", "It works."]
    assert [json.loads(line) for line in listed.output.splitlines()] == [
        {"target": "telegram:7", "name": "", "kind": "", "home": True, "gone": ""},
        {
            "target": "telegram:-1001",
            "name": "Build log",
            "kind": "group",
            "home": False,
            "gone": "",
        },
    ]
    assert "telegram:-1001  group    Build log\n" in table.output
    assert "(home)" in table.output
    assert wrong.exit_code == 2
    assert wrong.output == "telegram has no chat named 'Build lgo': did you mean 'Build log'?\n"


async def test_a_home_chat_is_set_in_the_chat_or_in_the_settings(tmp_path: Path) -> None:
    async with telegram(tmp_path) as server:
        none = await sends(tmp_path, "telegram", "hi")
        assert "write /sethome in a chat" in none.output
        done = await sends(tmp_path, "telegram", "one", TELEGRAM_HOME_CHANNEL="-1001:17")
        assert done.output == "delivered to telegram:-1001:17\n"
        server.says(PERSON, "/sethome")
        await until(lambda: server.texts(PERSON))
        done = await sends(tmp_path, "telegram", "two", TELEGRAM_HOME_CHANNEL="-1001:17")
        assert done.output == "delivered to telegram:7\n"


async def test_a_chat_that_is_gone_is_reported_until_it_writes_again(tmp_path: Path) -> None:
    async with telegram(tmp_path, "welcome") as server:
        first = await sends(tmp_path, "telegram:99", "one")
        assert first.exit_code == 1
        assert first.output == "refused by telegram:99: Bad Request: chat not found\n"
        calls = len(server.calls)
        assert (await sends(tmp_path, "telegram:99", "two")).output == first.output
        assert len(server.calls) == calls
        server.add_chat(99)
        assert (await sends(tmp_path, "telegram:99", "three")).exit_code == 1
        forced = await sends(tmp_path, "telegram:99", "four", "--force")
        assert forced.output == "delivered to telegram:99\n"
        assert server.texts(99) == ["four"]


async def test_without_a_gateway_the_message_waits_for_one(tmp_path: Path) -> None:
    waiting = await sends(tmp_path, "telegram:7", "later")
    assert waiting.exit_code == 0
    assert waiting.output.startswith("queued for telegram:7: no gateway serves telegram")
    async with telegram(tmp_path) as server:
        await until(lambda: server.texts(PERSON) == ["later"])


async def test_a_gateway_that_can_not_send_yet_leaves_the_message_queued(tmp_path: Path) -> None:
    async with telegram(tmp_path) as server:
        server.penalize(PERSON, 60)
        done = await sends(tmp_path, "telegram:7", "later", "--timeout", "0.3")
        assert done.output == (
            "queued for telegram:7: the gateway has not sent it yet, and will try again\n"
        )


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ((), 2, "name a target, or use --list"),
        (("telegrm:7", "x"), 2, "'telegrm' is no platform: did you mean 'telegram'?"),
        (("telegram:7",), 2, "There is nothing to send: give a text or a file."),
        (("telegram:7", "  "), 2, "There is nothing to send"),
        (("origin", "x"), 2, "'origin' names no chat here"),
        (("telegram:7", "--file", "/nowhere"), 2, "does not exist"),
    ],
)
def test_a_wrong_command_says_what_to_do(
    tmp_path: Path, args: tuple[str, ...], code: int, said: str
) -> None:
    done = hermes(tmp_path, *args)
    assert said in " ".join(done.output.split())
    assert done.exit_code == code


def test_an_empty_list_says_how_a_chat_becomes_known(tmp_path: Path) -> None:
    assert "write to the bot once" in hermes(tmp_path, "--list").output
