"""A client may send a request with the results of its tools more than once."""

from pathlib import Path

import anyio
import openai
import pytest

from hermes.testing.openai_client import KITCHEN
from hermes.testing.running import until
from hermes.testing.scripted import Plan, PlannedCall
from hermes.testing.tool_client import ids_of, states_in, talking, text_of


@pytest.fixture(params=["plain", "streamed"])
def streamed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "streamed")


async def test_the_same_results_again_return_the_stored_answer(
    tmp_path: Path, streamed: bool
) -> None:
    async with talking(tmp_path) as client:
        calls = client.heard(await client.ask('tool:look{"at":"STEP"} steps:2'))
        client.results(calls)
        first = await client.send()
        before = client.service.model.stats.calls
        client.stream = streamed
        again = await client.send()
        assert ids_of(again) == ids_of(first)
        client.results(client.heard(again))
        final = await client.send()
        assert client.service.model.stats.calls == before + 1
        assert text_of(await client.send()) == text_of(final)
        # The turn has ended. If the client repeats its first request with results, it still gets
        # the answer to that request.
        client.said = client.said[:3]
        assert (
            client.heard(await client.send())[0].id
            == (first.choices[0].message.tool_calls or [])[0].id
        )
        assert client.service.model.stats.calls == before + 1


async def test_the_same_results_attach_to_the_running_turn(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        client.results(client.heard(await client.ask("tool:look{} tokens:20 delay:0.02")))
        answers: list[str] = []

        async def send() -> None:
            answers.append(text_of(await client.send()))

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(send)
        assert client.service.model.stats.calls == 2
    assert len(set(answers)) == 1


async def test_other_results_for_the_same_calls_are_a_conflict(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        calls = client.heard(await client.ask("tool:look{}"))
        client.results(calls, look="blue")
        await client.send()
        client.said[-1]["content"] = "red"
        with pytest.raises(openai.ConflictError) as caught:
            await client.send()
    assert caught.value.code == "tool_results_conflict"


async def test_a_repeated_request_gets_the_same_answer_after_its_turn_has_continued(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path) as client:
        look = PlannedCall(name="look", arguments="{}")
        client.service.model.script += [Plan(calls=(look,)), Plan(hang=True)]
        key = client.headers = {"Idempotency-Key": "once"}
        first = await client.ask("go on")
        request = list(client.said)
        client.results(client.heard(first))
        client.headers = {"Idempotency-Key": "another"}
        async with anyio.create_task_group() as group:
            group.start_soon(client.send)
            await until(lambda: len(client.service.model.requests) == 2)
            client.said, client.headers = request, key
            with anyio.fail_after(5):
                again = await client.send()
            group.cancel_scope.cancel()
    assert ids_of(again) == ids_of(first)


async def test_a_repeated_request_does_not_close_the_calls_of_its_own_turn(tmp_path: Path) -> None:
    async with talking(tmp_path, session=True) as client:
        key = {**KITCHEN, "Idempotency-Key": "once"}
        client.headers = key
        first = await client.ask("tool:look{}")
        assert ids_of(await client.send()) == ids_of(first)
        assert states_in(tmp_path) == ["suspended"]
        client.results(client.heard(first))
        client.headers = KITCHEN
        assert "result of look" in text_of(await client.send())


@pytest.mark.parametrize("session", [True, False], ids=["session", "stateless"])
async def test_an_idempotency_key_belongs_to_one_request_with_results_too(
    tmp_path: Path, session: bool
) -> None:
    async with talking(tmp_path, session=session) as client:
        plain = client.headers
        client.headers = {**plain, "Idempotency-Key": "asked"}
        first = await client.ask("tool:look{}")
        client.results(client.heard(first))
        with pytest.raises(openai.ConflictError) as caught:
            await client.send()
        assert caught.value.code == "idempotency_key_conflict"
        assert states_in(tmp_path) == ["suspended"], "nothing was taken"
        client.headers = {**plain, "Idempotency-Key": "results"}
        answer = text_of(await client.send())
        assert text_of(await client.send()) == answer
        client.said = []
        with pytest.raises(openai.ConflictError) as caught:
            await client.ask("something else")
        assert caught.value.code == "idempotency_key_conflict"


@pytest.mark.parametrize("session", [True, False], ids=["session", "stateless"])
async def test_results_whose_turn_failed_temporarily_can_be_sent_again_and_are_answered(
    tmp_path: Path, session: bool
) -> None:
    async with talking(tmp_path, session=session, HERMES_API_MAX_RETRIES="0") as client:
        model = client.service.model
        look = PlannedCall(name="look", arguments="{}")
        model.script += [Plan(text="Let me see.", calls=(look,)), Plan(status=401)]
        client.results(client.heard(await client.ask("go on")), look="blue")
        with pytest.raises(openai.APIStatusError):
            await client.send()
        answer = text_of(await client.send())
        assert "blue" in answer
        assert "Let me see." not in answer
        assert model.stats.calls == 3
        assert text_of(await client.send()) == answer
        assert model.stats.calls == 3
    assert states_in(tmp_path) == ["completed"]


async def test_a_turn_that_is_run_again_keeps_the_answers_to_earlier_requests(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path, HERMES_API_MAX_RETRIES="0") as client:
        look = PlannedCall(name="look", arguments="{}")
        client.service.model.script += [Plan(calls=(look,)), Plan(status=401)]
        key = client.headers = {"Idempotency-Key": "once"}
        first = await client.ask("go on")
        request = list(client.said)
        client.results(client.heard(first))
        client.headers = {"Idempotency-Key": "another"}
        with pytest.raises(openai.APIStatusError):
            await client.send()
        await client.send()
        client.said, client.headers = request, key
        assert ids_of(await client.send()) == ids_of(first)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "plain"])
async def test_results_of_a_run_that_lost_its_reader_get_no_empty_answer(
    tmp_path: Path, stream: bool
) -> None:
    async with talking(tmp_path) as client:
        look = PlannedCall(name="look", arguments="{}")
        client.service.model.script += [Plan(calls=(look,)), Plan(hang=True)]
        client.results(client.heard(await client.ask("go on")))
        async with anyio.create_task_group() as group:
            group.start_soon(client.send)
            await until(lambda: len(client.service.model.requests) == 2)
            group.cancel_scope.cancel()
        await until(lambda: states_in(tmp_path) == ["stopped"])
        client.stream = stream
        with pytest.raises(openai.UnprocessableEntityError) as caught:
            await client.send()
    assert caught.value.code == "stopped"
