"""A turn can wait for a person's answer and for the client's tools at the same time."""

import operator
import time
from pathlib import Path

import anyio
import anyio.lowlevel
import openai
import pytest

from hermes.state.retention import forget_messages
from hermes.testing.openai_client import KITCHEN
from hermes.testing.running import until_rows
from hermes.testing.scripted import Plan, PlannedCall
from hermes.testing.tool_client import ToolClient, states_in, talking, text_of


async def test_an_open_question_is_answered_after_the_results(tmp_path: Path) -> None:
    async with talking(tmp_path, session=True) as client:
        asked = await client.ask('tool:look{} tool:ask{"question":"Which one?"}')
        assert "Which one?" in text_of(asked)
        calls = client.heard(asked)
        client.results(calls, look="blue")
        kept = await client.send()
        assert text_of(kept) == "Which one?"
        assert kept.choices[0].finish_reason == "stop"
        assert text_of(await client.send()) == "Which one?"
        client.said[-1]["content"] = "red"
        with pytest.raises(openai.ConflictError):
            await client.send()
        client.said = []
        answer = text_of(await client.ask("the left one"))
    assert "blue" in answer
    assert "the person said: the left one" in answer


async def test_an_answer_to_the_question_closes_calls_without_results(tmp_path: Path) -> None:
    async with talking(tmp_path, session=True) as client:
        client.heard(await client.ask('tool:look{} tool:ask{"question":"Which one?"}'))
        client.said = []
        answer = text_of(await client.ask("the left one"))
    assert "Not answered" in answer
    assert "the left one" in answer


async def question_expired(client: ToolClient) -> None:
    store = client.service.gateway._store
    with anyio.fail_after(10):
        query = "select 1 from questions where kind = 'question' and state = 'open'"
        await until_rows(store, query, operator.not_)


UNANSWERED = 'tool:look{} tool:ask{"question":"Which one?","expires_in":0.05}'
"""Makes the model call a client tool and ask a question in one step. The question expires before
the call of the client tool."""


async def test_every_call_has_a_result_when_the_client_continues_after_an_expired_question(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path, session=True) as client:
        await client.ask(UNANSWERED)
        await question_expired(client)
        client.said = []
        assert "never mind" in text_of(await client.ask("never mind"))
        sent = client.service.model.requests[-1].messages
        assert client.service.model.stats.refused == {}
    told = [message.text for message in sent if message.role == "tool"]
    assert [text.partition(":")[0] for text in told] == ["Not answered", "Not finished"]


async def test_a_new_message_with_the_results_of_an_expired_question_is_a_conflict(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path, session=True) as client:
        client.results(client.heard(await client.ask(UNANSWERED)), look="blue")
        await question_expired(client)
        with pytest.raises(openai.ConflictError) as caught:
            await client.ask("and be brief")
        assert caught.value.code == "question_expired"
        del client.said[-1]
        answer = text_of(await client.send())
        assert client.service.model.stats.refused == {}
    assert "blue" in answer
    assert "nobody answered" in answer


async def test_the_error_says_that_a_call_has_expired_while_a_question_keeps_its_turn_open(
    tmp_path: Path,
) -> None:
    (tmp_path / "config.yaml").write_text("agent: {client_tool_timeout: 0.05}\n")
    async with talking(tmp_path, session=True) as client:
        client.results(client.heard(await client.ask("tool:look{} tool:ask{}")))
        expired = "select 1 from questions where kind = 'client_call' and state = 'expired'"
        with anyio.fail_after(10):
            await until_rows(client.service.gateway._store, expired)
        with pytest.raises(openai.BadRequestError) as caught:
            await client.send()
    assert caught.value.code == "tool_call_expired"


async def test_kept_results_remain_after_finished_messages_are_deleted(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path, session=True) as client:
        client.results(client.heard(await client.ask("tool:look{} tool:ask{}")), look="blue")
        await client.send()
        await client.service.gateway._store.run(forget_messages, time.time() + 60)
        client.said = []
        assert "blue" in text_of(await client.ask("the left one"))


async def test_a_repeated_answer_to_a_question_gets_the_same_result(tmp_path: Path) -> None:
    async with talking(tmp_path, session=True) as client:
        await client.ask("tool:ask{}")
        client.said = []
        client.headers = {**KITCHEN, "Idempotency-Key": "once"}
        answer = text_of(await client.ask("the left one"))
        assert "the left one" in answer
        assert text_of(await client.send()) == answer


async def test_a_repeated_answer_that_leaves_a_question_open_gets_the_same_reply(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path, session=True) as client:
        await client.ask('tool:ask{"question":"Which?"} tool:ask{"question":"When?"}')
        client.said = []
        client.headers = {**KITCHEN, "Idempotency-Key": "once"}
        noted = text_of(await client.ask("the left one"))
        assert noted == "Noted. Still open: When?"
        assert text_of(await client.send()) == noted


async def test_results_that_were_kept_for_a_question_run_a_failed_turn_again(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path, session=True, HERMES_API_MAX_RETRIES="0") as client:
        look = PlannedCall(name="look", arguments="{}")
        ask = PlannedCall(name="ask", arguments='{"question":"Which one?"}')
        client.service.model.script += [Plan(calls=(look, ask)), Plan(status=401)]
        client.results(client.heard(await client.ask("go on")), look="blue")
        assert text_of(await client.send()) == "Which one?"
        with_results, client.said = client.said, []
        with pytest.raises(openai.APIStatusError):
            await client.ask("the left one")
        client.said = with_results
        with anyio.fail_after(20):
            answer = text_of(await client.send())
    assert "blue" in answer
    assert "the left one" in answer
    assert states_in(tmp_path) == ["completed"]
