"""The command `hermes pairing`."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import click
import pytest
from click.testing import CliRunner, Result

from hermes.app.application import Application
from hermes.control.pairing import PairingRequest, hash_code, new_code
from hermes.entry.cli.main import cli
from hermes.settings import load
from hermes.state.pairing import offer, request
from hermes.types.store import Work

Run = Callable[..., Result]


@pytest.fixture
def hermes(tmp_path: Path) -> Run:
    environ = {"HERMES_HOME": str(tmp_path)}
    return lambda *args, **more: CliRunner(env=environ).invoke(
        cli, ["pairing", *args], obj=Application(), **more
    )


def commit(home: Path, transaction: Callable[..., Work[object]], *args: object) -> None:
    async def run() -> None:
        async with Application().open_store(load(home, {})) as store:
            await store.run(transaction, *args)

    anyio.run(run)


def ask(home: Path, user: str = "7", name: str | None = "Ann", account: str = "telegram") -> str:
    """Makes a stranger ask to be paired. Returns the code that the stranger was shown."""
    code = new_code()
    wanted = PairingRequest(
        account=account, user_id=user, user_name=name, chat_id=user, made_at=time.time()
    )
    commit(home, request, hash_code(account, code), wanted)
    return code


def test_a_request_is_listed_approved_and_revoked(tmp_path: Path, hermes: Run) -> None:
    assert hermes("list").stdout == "Nobody is paired, and nobody waits for approval.\n"
    code = ask(tmp_path)
    assert hermes().stdout.startswith("waiting  20")
    approved = hermes("approve", "telegram", code.lower())
    assert approved.stdout == "paired as owner: user 7 of telegram, named “Ann”\n"
    listed = hermes("list").stdout
    assert listed.startswith("owner    20")
    assert listed.endswith("  user 7 of telegram, named “Ann”, paired by owner\n")
    second = ask(tmp_path, "8", None)
    assert hermes("approve", "telegram", second).stdout == "paired as user: user 8 of telegram\n"
    assert hermes("revoke", "telegram", "8").stdout == "user 8 of telegram is no longer paired\n"
    again = hermes("revoke", "telegram", "8")
    assert (again.exit_code, again.stderr) == (
        2,
        "user '8' of telegram is not paired: `hermes pairing list` shows who is\n",
    )


def test_scripts_read_json(tmp_path: Path, hermes: Run) -> None:
    code = ask(tmp_path)
    ask(tmp_path, "8")
    approved = json.loads(hermes("approve", "telegram", code, "--json").stdout)
    assert (approved["user_id"], approved["user_name"], approved["role"]) == ("7", "Ann", "owner")
    waiting, paired = (json.loads(line) for line in hermes("list", "--json").stdout.splitlines())
    assert (waiting["state"], waiting["user_id"]) == ("waiting", "8")
    assert (paired["state"], paired["user_id"], paired["role"]) == ("paired", "7", "owner")
    revoked = json.loads(hermes("revoke", "telegram", "8", "--json").stdout)
    assert revoked == {"account": "telegram", "user_id": "8"}


def test_an_owner_in_the_settings_is_the_only_owner(tmp_path: Path, hermes: Run) -> None:
    (tmp_path / "config.yaml").write_text("owners: ['telegram:1']")
    approved = hermes("approve", "telegram", ask(tmp_path))
    assert approved.stdout == "paired as user: user 7 of telegram, named “Ann”\n"


def test_five_wrong_codes_lock_the_platform_even_for_the_right_code(
    tmp_path: Path, hermes: Run
) -> None:
    code, other = ask(tmp_path), ask(tmp_path, account="matrix")
    for left in (4, 3, 2, 1):
        wrong = hermes("approve", "telegram", new_code())
        assert wrong.exit_code == 2
        assert f"({left} more tries)" in wrong.stderr
    for refused in (new_code(), code):
        locked = hermes("approve", "telegram", refused)
        assert locked.exit_code == 2
        assert locked.stderr.startswith("there were 5 wrong codes for telegram: codes are accepted")
    assert hermes("approve", "matrix", other).exit_code == 0


def test_a_code_belongs_to_one_account_and_a_code_of_an_admin_can_t_be_approved(
    tmp_path: Path, hermes: Run
) -> None:
    code, handed_out = ask(tmp_path, account="telegram.b"), new_code()
    commit(tmp_path, offer, hash_code("telegram", handed_out), "telegram", "owner", time.time())
    assert hermes("approve", "telegram", code).exit_code == 2
    assert hermes("approve", "telegram", handed_out).exit_code == 2
    assert hermes("approve", "telegram.b", code).exit_code == 0


def test_an_unknown_platform_is_named(hermes: Run) -> None:
    wrong = hermes("approve", "telegrm", "ABCD2345")
    assert wrong.stderr.startswith("there is no platform 'telegrm'")
    assert "telegram" in wrong.stderr


def test_a_person_at_a_terminal_sees_the_user_before_the_approval(
    tmp_path: Path, hermes: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = ask(tmp_path, name="Eve\x1b[2J")
    asked: list[str] = []

    class Terminal:
        def isatty(self) -> bool:
            return True

    def refuse(question: str, **options: object) -> bool:
        asked.append(question)
        return False

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(click, "confirm", refuse)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    with pytest.raises(click.Abort):
        cli(
            ["pairing", "approve", "telegram", code],
            obj=Application(),
            prog_name="hermes",
            standalone_mode=False,
        )
    (question,) = asked
    assert question.startswith("Pair user 7 of telegram, named “Eve")
    assert "\x1b" not in question
    monkeypatch.undo()
    assert "waiting" in hermes("list").stdout
