"""A chat completion that is repeated with its idempotency key is answered without a second run."""

from pathlib import Path

import openai
import pytest

from hermes.testing.openai_client import KITCHEN, client_of, user_says
from hermes.testing.scripted import Plan, is_complete
from hermes.testing.service import serving


async def test_the_same_idempotency_key_runs_once_and_answers_twice(tmp_path: Path) -> None:
    key = {"Idempotency-Key": "order-7"}
    async with serving(tmp_path) as service, client_of(service) as client:
        answers = [
            await client.chat.completions.create(
                model="main", messages=user_says("buy bread"), extra_headers=key
            )
            for _ in range(2)
        ]
        with pytest.raises(openai.ConflictError):
            await client.chat.completions.create(
                model="main", messages=user_says("buy milk"), extra_headers=key
            )
        assert service.model.stats.calls == 1
    first, second = (answer.choices[0].message.content for answer in answers)
    assert first == second
    assert is_complete(first or "")


async def test_an_idempotency_key_holds_across_a_restart(tmp_path: Path) -> None:
    key = {"Idempotency-Key": "order-8"}
    said = []
    for _ in range(2):
        async with serving(tmp_path) as service, client_of(service) as client:
            answer = await client.chat.completions.create(
                model="main", messages=user_says("buy bread"), extra_headers=key
            )
            said.append(answer.choices[0].message.content)
    assert said[0] == said[1]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_request_that_failed_for_a_time_can_be_repeated(
    tmp_path: Path, stream: bool
) -> None:
    key = {"Idempotency-Key": "order-9"}
    async with serving(tmp_path) as service, client_of(service) as client:

        async def ask() -> str:
            answer = await client.chat.completions.create(
                model="main", messages=user_says("buy bread"), extra_headers=key, stream=stream
            )
            if not isinstance(answer, openai.AsyncStream):
                return answer.choices[0].message.content or ""
            return "".join([c.choices[0].delta.content or "" async for c in answer if c.choices])

        service.model.script.append(Plan(status=401))
        with pytest.raises(openai.InternalServerError) as caught:
            await ask()
        assert caught.value.code == "auth_failed"
        first, second = await ask(), await ask()
        assert service.model.stats.calls == 2
    assert is_complete(first)
    assert first == second


async def test_an_idempotency_key_belongs_to_one_session(tmp_path: Path) -> None:
    key = {"Idempotency-Key": "order-10"}
    async with serving(tmp_path) as service, client_of(service) as client:
        for headers in ({**key, **KITCHEN}, {**key, **KITCHEN}):
            await client.chat.completions.create(
                model="main", messages=user_says("buy bread"), extra_headers=headers
            )
        for other in (key, {**key, "X-Hermes-Session-Id": "garden"}):
            with pytest.raises(openai.ConflictError) as caught:
                await client.chat.completions.create(
                    model="main", messages=user_says("buy bread"), extra_headers=other
                )
            assert caught.value.code == "idempotency_key_conflict"
        assert service.model.stats.calls == 1
