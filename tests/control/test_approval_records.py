"""The operator decides every approval, while a gateway runs and while none runs."""

import time
from pathlib import Path

import pytest

from hermes.control import approval_records
from hermes.control.approval_records import ApprovalRefused, NoSuchApproval, OpenApproval
from hermes.state.codec import encode
from hermes.testing.approvals import DANGEROUS, make_folders, results, runs
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import running, until
from hermes.testing.scripted import ScriptedModel, says
from hermes.testing.stores import open_test_store
from hermes.types.approvals import Grant
from hermes.types.store import Work


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    make_folders(folder, "a", "b")
    return folder


async def asked(home: Path, server: ChatServer, model: ScriptedModel) -> list[OpenApproval]:
    """Runs a gateway until the agent has asked for approvals. Returns these approvals."""
    async with running(home, [PlainAdapter(server)], model, DANGEROUS) as gateway:
        server.says("clean up")
        await until(server.texts)
        await until(lambda: not gateway.busy)
    async with open_test_store(home) as store:
        return (await store.read(approval_records.listed))[0]


async def decide(home: Path, id: str, grant: Grant | None, reason: str = "") -> None:
    """Decides about the approval, as a command in another process does."""
    async with open_test_store(home) as store:
        await store.run(approval_records.decide, id, grant, reason, time.time())


def offer_only_once() -> Work[None]:
    """Changes all questions, so that their actions can be approved for one call only."""
    yield "update questions set choices = ?", (encode(("Once",)),)


async def test_a_running_gateway_notices_the_decision(tmp_path: Path, workspace: Path) -> None:
    server, model = ChatServer(), ScriptedModel([runs("rm -rf a"), says("done")])
    async with running(tmp_path, [PlainAdapter(server)], model, DANGEROUS) as gateway:
        server.says("clean up")
        await until(server.texts)
        await until(lambda: not gateway.busy)
        async with open_test_store(tmp_path) as store:
            (one,), _ = await store.read(approval_records.listed)
        assert (one.detail, one.choices) == ("rm -rf a", ("Once", "This session", "Always"))
        await decide(tmp_path, one.short_id, "once")
        await until(lambda: "done" in server.texts())
    assert not (workspace / "a").exists()


async def test_the_next_start_continues_after_a_decision(tmp_path: Path, workspace: Path) -> None:
    server, model = ChatServer(), ScriptedModel([runs("rm -rf a"), says("kept")])
    (one,) = await asked(tmp_path, server, model)
    await decide(tmp_path, one.id, None, "use the trash")
    async with running(tmp_path, [PlainAdapter(server)], model, DANGEROUS):
        await until(lambda: "kept" in server.texts())
    assert (workspace / "a").exists()
    assert results(model) == [
        "The person denied this action: use the trash. Do not try it in another way."
    ]


async def test_each_of_two_approvals_is_decided_by_its_own_id(
    tmp_path: Path, workspace: Path
) -> None:
    server, model = ChatServer(), ScriptedModel([runs("rm -rf a", "rm -rf b"), says("done")])
    waiting = {one.detail: one.id for one in await asked(tmp_path, server, model)}
    await decide(tmp_path, waiting["rm -rf b"], "once")
    await decide(tmp_path, waiting["rm -rf a"], None)
    async with running(tmp_path, [PlainAdapter(server)], model, DANGEROUS):
        await until(lambda: "done" in server.texts())
    assert (workspace / "a").exists()
    assert not (workspace / "b").exists()


async def test_a_lasting_approval_is_a_rule_until_it_is_revoked(
    tmp_path: Path, workspace: Path
) -> None:
    server = ChatServer()
    model = ScriptedModel([runs("rm -rf a"), says("done"), runs("rm -rf a"), says("done again")])
    (one,) = await asked(tmp_path, server, model)
    await decide(tmp_path, one.id, "always")
    async with open_test_store(tmp_path) as store:
        waiting, (rule,) = await store.read(approval_records.listed)
        assert (waiting, rule.detail, rule.session) == ([], "rm -rf a", None)
        assert await store.run(approval_records.revoke, rule.id[-8:]) == rule
        assert await store.read(approval_records.listed) == ([], [])
        with pytest.raises(NoSuchApproval, match="there is no rule with the id"):
            await store.run(approval_records.revoke, rule.id)
    async with running(tmp_path, [PlainAdapter(server)], model, DANGEROUS):
        await until(lambda: "done" in server.texts())
        server.says("clean up")
        await until(lambda: "rm -rf a" in server.texts()[-1])
    assert not (workspace / "a").exists()


async def test_a_decision_that_is_not_possible_is_refused_with_advice(
    tmp_path: Path, workspace: Path
) -> None:
    server, model = ChatServer(), ScriptedModel([runs("rm -rf a"), says("done")])
    (one,) = await asked(tmp_path, server, model)
    with pytest.raises(NoSuchApproval, match="there is no approval that waits with the id '1'"):
        await decide(tmp_path, "1", "once")
    async with open_test_store(tmp_path) as store:
        with pytest.raises(ApprovalRefused, match="has expired"):
            await store.run(approval_records.decide, one.id, "once", "", one.expires_at)
        await store.run(offer_only_once)
    with pytest.raises(ApprovalRefused, match="can't be approved for more than one call"):
        await decide(tmp_path, one.id, "always")
    assert (workspace / "a").exists()
