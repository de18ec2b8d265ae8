"""Errors have the format of OpenAI's API."""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from hermes.entry.cli.logs import start_logging
from hermes.entry.http.errors import ApiError, bad_request, error_response, failed_turn
from hermes.testing.bare import request
from hermes.testing.running import TroubledStore
from hermes.testing.service import TEST_OVERRIDES, serving
from hermes.types.errors import (
    HermesError,
    IntakeClosed,
    RateLimited,
    StoreDamaged,
    StoreUnavailable,
    TooBusy,
)
from hermes.types.events import TurnFinished


def body(error: HermesError) -> dict[str, object]:
    found: dict[str, object] = msgspec.json.decode(bytes(error_response(error).body))["error"]
    return found


def headers(error: HermesError) -> dict[str, str]:
    return dict(error_response(error).headers)


def test_an_error_has_all_four_fields_and_its_status() -> None:
    error = bad_request("Wrong.", "invalid_role", "messages[0].role")
    assert error_response(error).status_code == 400
    assert body(error) == {
        "message": "Wrong.",
        "type": "invalid_request_error",
        "param": "messages[0].role",
        "code": "invalid_role",
    }


@pytest.mark.parametrize(
    ("error", "status", "kind", "pause"),
    [
        (TooBusy("full"), 429, "rate_limit_error", "1"),
        (RateLimited("slow", 7.2), 429, "rate_limit_error", "8"),
        (RateLimited("slow"), 429, "rate_limit_error", "10"),
        (IntakeClosed("closing"), 503, "server_error", "1"),
        (ApiError(418, "teapot", "teapot"), 418, "invalid_request_error", None),
    ],
)
def test_the_type_and_the_pause_depend_on_the_error(
    error: HermesError, status: int, kind: str, pause: str | None
) -> None:
    assert error_response(error).status_code == status
    assert body(error) == {"message": str(error), "type": kind, "param": None, "code": error.code}
    assert headers(error).get("retry-after") == pause


def test_paths_of_the_operator_are_not_shown_to_clients() -> None:
    told = body(StoreDamaged("/home/me/hermes.db is damaged"))
    assert told["code"] == "store_unavailable"
    assert "hermes.db" not in str(told["message"])


@contextmanager
def logged() -> Iterator[io.StringIO]:
    """Collects the log lines of the block. As in the gateway, repeated lines are limited."""
    before, out = (logging.root.handlers[:], logging.root.level), io.StringIO()
    start_logging("INFO", (), out)
    try:
        yield out
    finally:
        logging.root.handlers[:], logging.root.level = before


async def test_while_the_store_fails_the_log_has_one_line_for_all_refused_requests(
    tmp_path: Path,
) -> None:
    failures = 0

    async def fail(transaction: str) -> None:
        nonlocal failures
        if transaction == "Intake.take":
            failures += 1
            raise StoreUnavailable(f"the database can't be used now (error {failures})")

    overrides = replace(TEST_OVERRIDES, wrap_store=lambda store: TroubledStore(store, fail))
    said = b'{"model":"main","messages":[{"role":"user","content":"hi"}]}'
    async with serving(tmp_path, overrides=overrides) as service:
        with logged() as out:
            for _ in range(20):
                status, _, _ = await request(service.port, "POST", "/v1/chat/completions", said)
                assert status == 503
    assert failures == 20
    refused = [line for line in out.getvalue().splitlines() if "database can't be used" in line]
    assert len(refused) == 1
    assert "a request was refused" in refused[0]


def test_a_request_that_is_not_read_to_its_end_closes_the_connection() -> None:
    assert "connection" not in headers(ApiError(413, "large", "large"))
    assert headers(ApiError(413, "large", "large", close=True))["connection"] == "close"


def test_the_error_of_a_failed_turn_is_the_error_in_its_last_event() -> None:
    failed = TurnFinished(
        outcome="failed", text="Busy.", code="rate_limited", status=429, retry_after=9.0
    )
    error = failed_turn(failed)
    assert (str(error), error.status, error.code) == ("Busy.", 429, "rate_limited")
    assert error.retry_after == 9.0
    nameless = failed_turn(TurnFinished(outcome="failed", text="Hm."))
    assert (nameless.status, nameless.code) == (500, "agent_error")


def test_every_429_says_how_long_to_wait() -> None:
    failed = TurnFinished(outcome="failed", text="slow", code="rate_limited", status=429)
    assert headers(failed_turn(failed))["retry-after"] == "10"
