"""A client decides about the actions of a run, by the id of the run."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from hermes.testing.approvals import dangerous_service, make_folders
from hermes.testing.bare import request
from hermes.testing.nodes import asked
from hermes.testing.running import until
from hermes.testing.service import Service, serving
from hermes.types.identity import TurnId
from hermes.types.value import Value

Event = tuple[int, str, dict[str, object]]


@asynccontextmanager
async def service_in(home: Path) -> AsyncIterator[Service]:
    async with serving(home, overrides=dangerous_service(home)) as service:
        yield service


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    make_folders(folder, "a", "b")
    return folder


def removing(*folders: str) -> str:
    """Returns a message that makes the fake model delete these folders."""
    return " ".join(f'tool:terminal{{"command":"rm -rf {folder}"}}' for folder in folders)


async def suspended_run(service: Service, *folders: str, **headers: str) -> str:
    """Sends a request whose run waits for approvals. Returns the id of the run."""
    messages = [{"role": "user", "content": removing(*folders)}]
    body = msgspec.json.encode({"model": "main", "messages": messages})
    status, found, _ = await request(service.port, "POST", "/v1/chat/completions", body, **headers)
    assert status == 200
    return found["x-hermes-run-id"]


async def decide(service: Service, run: str, **body: object) -> tuple[int, dict[str, object]]:
    path, sent = f"/v1/runs/{run}/approval", msgspec.json.encode(body)
    status, _, answer = await request(service.port, "POST", path, sent)
    return status, msgspec.json.decode(answer, type=dict[str, object])


class Problem(Value):
    code: str
    message: str


def error_of(answer: dict[str, object]) -> Problem:
    return msgspec.convert(answer["error"], Problem)


async def events(service: Service, run: str, after: int = 0) -> list[Event]:
    status, _, body = await request(
        service.port, "GET", f"/v1/runs/{run}/events", last_event_id=str(after)
    )
    assert status == 200
    found = []
    for frame in body.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in frame.splitlines() if ": " in line)
        if "data" in fields:
            data = msgspec.json.decode(fields["data"], type=dict[str, object])
            found.append((int(fields["id"]), fields["event"], data))
    return found


def requests_in(found: list[Event]) -> list[dict[str, object]]:
    return [data for _, name, data in found if name == "approval.request"]


async def test_the_event_of_an_approval_shows_what_is_approved(
    tmp_path: Path, workspace: Path
) -> None:
    async with service_in(tmp_path) as service:
        stateless = await events(service, await suspended_run(service, "a"))
        run = await suspended_run(service, "a", x_hermes_session_id="s")
        in_session = await events(service, run)
    (shown,) = requests_in(in_session)
    assert shown["detail"] == "rm -rf a"
    assert shown["reason"] == "deletes a with everything in it"
    assert shown["choices"] == ["once", "session", "always", "deny"]
    expires_at = shown["expires_at"]
    assert isinstance(expires_at, int)
    assert 0 < expires_at - time.time() < 3600
    assert "```\nrm -rf a\n```" in str(shown["prompt"])
    (in_request,) = requests_in(stateless)
    assert in_request["choices"] == ["once", "deny"]


@pytest.mark.parametrize("choice", ["once", "allow"])
async def test_an_approved_run_goes_on_without_a_reader(
    tmp_path: Path, workspace: Path, choice: str
) -> None:
    async with service_in(tmp_path) as service:
        run = await suspended_run(service, "a")
        before = await events(service, run)
        assert before[-1][1] == "run.suspended"
        assert (workspace / "a").exists()
        assert await decide(service, run, choice=choice) == (
            200,
            {
                "object": "hermes.run.approval_response",
                "run_id": run,
                "choice": "once",
                "resolved": 1,
            },
        )
        await until(lambda: not service.gateway.busy)
        after = await events(service, run, before[-1][0])
    assert not (workspace / "a").exists()
    assert [name for _, name, _ in after][:2] == ["tool.started", "tool.completed"]
    assert after[-1][1] == "run.completed"
    assert all(number > before[-1][0] for number, _, _ in after)


async def test_a_reader_that_leaves_does_not_stop_an_approved_run(
    tmp_path: Path, workspace: Path
) -> None:
    slow = 'tool:terminal{"command":"rm -rf a; sleep 0.6; echo finished"}'
    async with service_in(tmp_path) as service:
        body = msgspec.json.encode({"messages": [{"role": "user", "content": slow}]})
        status, headers, _ = await request(service.port, "POST", "/v1/chat/completions", body)
        assert status == 200
        run = headers["x-hermes-run-id"]
        await decide(service, run, choice="once")
        with service.gateway.following(TurnId(run.removeprefix("run_"))) as following:
            await following.next()
        await until(lambda: not service.gateway.busy)
        found = await events(service, run)
    assert found[-1][1] == "run.completed"
    assert "finished" in str([data for _, name, data in found if name == "tool.completed"])


async def test_a_denied_action_is_not_done_and_the_model_reads_the_reason(
    tmp_path: Path, workspace: Path
) -> None:
    async with service_in(tmp_path) as service:
        run = await suspended_run(service, "a")
        status, answer = await decide(service, run, choice="deny", reason="keep my files")
        assert (status, answer["choice"]) == (200, "deny")
        await until(lambda: not service.gateway.busy)
        (result,) = (m for m in service.model.requests[-1].messages if m.role == "tool")
    assert (workspace / "a").exists()
    assert "The person denied this action: keep my files." in str(result.content)


async def test_if_several_actions_wait_the_id_is_needed(tmp_path: Path, workspace: Path) -> None:
    async with service_in(tmp_path) as service:
        run = await suspended_run(service, "a", "b")
        shown = {
            str(one["detail"]): str(one["id"]) for one in requests_in(await events(service, run))
        }
        status, answer = await decide(service, run, choice="once")
        assert status == 409
        assert error_of(answer).code == "approval_not_pending"
        assert all(id in error_of(answer).message for id in shown.values())
        # The decision about `rm -rf b` contains the whole id. The decision about `rm -rf a`
        # contains only the end of the id, which is the part that the question shows.
        status, _ = await decide(service, run, choice="once", approval_id=shown["rm -rf b"])
        assert status == 200
        assert (workspace / "b").exists()
        short = shown["rm -rf a"][-8:]
        status, _ = await decide(service, run, choice="deny", approval_id=short)
        assert status == 200
        await until(lambda: not service.gateway.busy and not (workspace / "b").exists())
    assert (workspace / "a").exists()


async def test_a_decision_can_be_made_only_once(tmp_path: Path, workspace: Path) -> None:
    async with service_in(tmp_path) as service:
        run = await suspended_run(service, "a")
        (shown,) = requests_in(await events(service, run))
        assert (await decide(service, run, choice="deny"))[0] == 200
        for more in ({}, {"approval_id": shown["id"]}):
            status, answer = await decide(service, run, choice="once", **more)
            assert (status, error_of(answer).code) == (409, "approval_not_pending")
        await until(lambda: not service.gateway.busy)
    assert (workspace / "a").exists()


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"choice": "maybe"}, 400, "invalid_approval_choice"),
        ({"choice": 1}, 400, "invalid_approval_choice"),
        ({}, 400, "invalid_approval_choice"),
        ({"choice": "always"}, 400, "invalid_approval_choice"),
        ({"choice": "once", "approval_id": "ffffffff"}, 409, "approval_not_pending"),
    ],
)
async def test_a_decision_that_is_not_possible_changes_nothing(
    tmp_path: Path, workspace: Path, body: dict[str, object], status: int, code: str
) -> None:
    """A stateless request belongs to no conversation, so a decision for longer (`always`) is not
    possible."""
    async with service_in(tmp_path) as service:
        run = await suspended_run(service, "a")
        answered, answer = await decide(service, run, **body)
        assert (answered, error_of(answer).code) == (status, code)
        assert (await decide(service, run, choice="deny"))[0] == 200


async def test_runs_of_other_keys_and_unknown_runs_are_not_found(
    tmp_path: Path, workspace: Path
) -> None:
    async with service_in(tmp_path) as service:
        foreign = await asked(service.gateway, removing("a"))
        await until(lambda: not service.gateway.busy)
        for run in (f"run_{foreign}", "run_nope", "nope"):
            status, answer = await decide(service, run, choice="once")
            assert (status, error_of(answer).code) == (404, "run_not_found")
    assert (workspace / "a").exists()


async def test_a_body_that_is_no_json_is_refused(tmp_path: Path, workspace: Path) -> None:
    async with service_in(tmp_path) as service:
        run = await suspended_run(service, "a")
        path = f"/v1/runs/{run}/approval"
        status, _, answer = await request(service.port, "POST", path, b"once")
    assert status == 400
    assert error_of(msgspec.json.decode(answer)).code == "invalid_json"
