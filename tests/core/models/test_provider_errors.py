"""An error response of a provider becomes the matching error of Hermes."""

from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.models.provider_errors import (
    ProviderProblem,
    interruption,
    refusal,
    retry_after,
    unreachable,
)
from hermes.settings import load
from hermes.testing.configured import models_of
from hermes.testing.upstream import PROVIDER_KEY, choice_of
from hermes.types.errors import (
    AuthFailed,
    Disconnected,
    HermesError,
    RateLimited,
    Rejected,
    TooLong,
)
from hermes.types.profile import ModelChoice

CHOICE = choice_of("chat")


def refused(status: int, body: bytes, headers: dict[str, str] | None = None) -> HermesError:
    error = refusal(CHOICE, status, headers or {}, body)
    assert PROVIDER_KEY not in str(error)
    assert "acme" in str(error)
    return error


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (301, Rejected),
        (400, Rejected),
        (401, AuthFailed),
        (402, AuthFailed),
        (403, AuthFailed),
        (404, Rejected),
        (408, Disconnected),
        (409, Disconnected),
        (413, TooLong),
        (422, Rejected),
        (429, RateLimited),
        (500, Disconnected),
        (503, Disconnected),
        (529, Disconnected),
    ],
)
def test_every_status_raises_the_matching_error(status: int, kind: type[HermesError]) -> None:
    body = b'{"error":{"message":"no, not\\n sk-secret","type":"x","code":null}}'
    error = refused(status, body)
    assert type(error) is kind
    assert status == 401 or "no, not …" in str(error)
    assert str(status) in str(error)


@pytest.mark.parametrize(
    "body",
    [
        b'{"error":"it is so"}',
        b'{"object":"error","message":"it is so","code":400}',
        b'{"object":"error","message":{"detail":[{"msg":"it is so"}]}}',
        b'{"detail":"it is so"}',
        b'[{"error":{"code":400,"message":"it is so","status":"INVALID_ARGUMENT"}}]',
        b'{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"it is so"}}}',
        b'{"type":"error","error":{"type":"invalid_request_error","message":"it is so"},'
        b'"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}',
    ],
)
def test_the_providers_error_text_is_found(body: bytes) -> None:
    assert "it is so" in str(refused(400, body))


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b'"\xff"', b"[" * 9999])
def test_the_message_for_an_error_without_text_gives_advice(body: bytes) -> None:
    assert "check base_url" in str(refused(400, body))


def test_a_long_error_text_is_cut_but_searched_completely() -> None:
    error = refused(400, msgspec.json.encode({"error": "x" * 9999 + " prompt is too long"}))
    assert len(str(error)) < 500
    assert isinstance(error, TooLong)


TOO_LONG = [
    (400, "Your input exceeds the context window of this model.", "context_length_exceeded"),
    (400, "This model's maximum context length is 8192 tokens. However, you requested", None),
    (400, "prompt is too long: 209000 tokens > 200000 maximum", None),
    (400, "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", None),
    (400, "the request exceeds the available context size, try increasing it", 400),
    (400, "The input token count (1189063) exceeds the maximum number of tokens allowed", 400),
    (400, "This model's maximum prompt length is 131072 but the request contains 537812", None),
    (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096", None),
    (400, "Invalid request: Your request exceeded model token limit: 8192", None),
    (400, "invalid params, context window exceeds limit (2013)", None),
    (400, "Prompt exceeds max length", "1261"),
    (400, "<400> InternalError: Range of input length should be [1, 129024]", None),
    (422, "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 tokens", None),
    (
        400,
        "Trying to keep the first 9000 tokens when context overflows is greater than the context"
        " length",
        None,
    ),
    (400, "Input is too long for requested model.", None),
]


@pytest.mark.parametrize(("status", "message", "code"), TOO_LONG)
def test_a_conversation_that_is_too_long_is_recognised(
    status: int, message: str, code: str | int | None
) -> None:
    body = msgspec.json.encode({"error": {"message": message, "code": code}})
    error = refused(status, body)
    assert isinstance(error, TooLong)
    assert "/new" in str(error)
    assert isinstance(interruption(CHOICE, ProviderProblem(message, code)), TooLong)


def test_llama_cpp_reports_a_too_long_conversation_in_the_type() -> None:
    body = b'{"error":{"code":400,"message":"no","type":"exceed_context_size_error"}}'
    assert isinstance(refused(400, body), TooLong)


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (429, "You exceeded your current quota", "insufficient_quota"),
        (402, "Insufficient Balance", "invalid_request_error"),
        (400, "Your credit balance is too low to access the Anthropic API.", None),
        (403, "Your account is not active", "billing_not_active"),
    ],
)
def test_an_account_without_credit_is_not_a_rate_limit(
    status: int, message: str, code: str | None
) -> None:
    error = refused(status, msgspec.json.encode({"error": {"message": message, "code": code}}))
    assert isinstance(error, AuthFailed)
    assert "add credit" in str(error)


def test_a_rate_limit_whose_text_mentions_billing_is_a_rate_limit() -> None:
    said = "Rate limit reached. To increase it visit https://platform.openai.com/account/billing."
    body = msgspec.json.encode({"error": {"message": said, "code": "rate_limit_exceeded"}})
    assert isinstance(refused(429, body), RateLimited)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (404, "The model `some-1` does not exist or you do not have access to it."),
        (404, "model: some-1"),
        (404, "Not Found"),
        (400, "some-1 is not a valid model ID"),
    ],
)
def test_the_error_for_an_unknown_model_says_where_to_find_other_models(
    status: int, message: str
) -> None:
    error = refused(status, msgspec.json.encode({"error": {"message": message}}))
    assert isinstance(error, Rejected)
    assert "'some-1'" in str(error)
    assert "hermes model list" in str(error)


@pytest.mark.parametrize("status", [429, 503, 529])
def test_a_server_error_with_retry_after_is_a_rate_limit(status: int) -> None:
    error = refused(status, b'{"error":{"message":"slow"}}', {"Retry-After": "7"})
    assert isinstance(error, RateLimited)
    assert error.retry_after == 7.0


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (ProviderProblem("overloaded", 502), Disconnected),
        (ProviderProblem("Overloaded", None, "overloaded_error"), Disconnected),
        (ProviderProblem("An error occurred", "server_error"), Disconnected),
        (ProviderProblem("Internal server error", None, "api_error"), Disconnected),
        (ProviderProblem("took too long", None, "timeout_error"), Disconnected),
        (ProviderProblem("too fast", "429"), RateLimited),
        (ProviderProblem("too fast", None, "rate_limit_error"), RateLimited),
        (ProviderProblem("too fast", "rate_limit_exceeded"), RateLimited),
        (ProviderProblem("who are you", None, "authentication_error"), AuthFailed),
        (ProviderProblem("not you", None, "permission_error"), AuthFailed),
        (ProviderProblem("pay", None, "billing_error"), AuthFailed),
        (ProviderProblem("too big", None, "request_too_large"), TooLong),
        (ProviderProblem("no such model", None, "not_found_error"), Rejected),
        (ProviderProblem("no", "invalid_prompt"), Rejected),
        ("something broke", Disconnected),
    ],
)
def test_an_error_inside_a_stream_is_the_same_as_in_a_response(
    problem: ProviderProblem | str, kind: type[HermesError]
) -> None:
    assert type(interruption(CHOICE, problem)) is kind


def test_the_error_names_a_host_that_can_not_be_reached() -> None:
    assert "in time" in str(unreachable(CHOICE, TimeoutError()))
    error = unreachable(CHOICE, OSError("refused"))
    assert CHOICE.base_url in str(error)
    assert isinstance(error, Disconnected)


NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "3"}, 3.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After": "3", "retry-after-ms": "250"}, 0.25),
        ({"Retry-After": format_datetime(datetime.fromtimestamp(NOW + 9, UTC))}, 9.0),
        ({"Retry-After": format_datetime(datetime.fromtimestamp(NOW - 9, UTC))}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({"retry-after-ms": "inf"}, None),
        ({"Retry-After": "9" * 400}, None),
    ],
)
def test_every_form_of_retry_after_is_parsed(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(headers, NOW) == seconds


@given(st.text(), st.sampled_from(["Retry-After", "retry-after-ms"]))
def test_every_retry_after_header_is_read_as_a_number_or_as_none(said: str, name: str) -> None:
    seconds = retry_after({name: said}, NOW)
    assert seconds is None or 0.0 <= seconds < float("inf")


@pytest.mark.parametrize("status", [401, 403])
def test_the_error_for_a_refused_key_names_its_variable(status: int) -> None:
    place = "environment OPENAI_API_KEY"
    choice = ModelChoice(
        provider="openai", model="m", base_url="http://x", api_key="k-k", key_place=place
    )
    assert f"({place})" in str(refusal(choice, status, {}, b""))


def test_the_error_for_a_missing_key_names_its_variable(tmp_path: Path) -> None:
    environ = {"HERMES_CUSTOM_BASE_URL": "http://x/v1", "HERMES_MODEL": "m"}
    choice = models_of(load(tmp_path, environ)).main()
    assert choice
    said = str(refusal(choice, 401, {}, b""))
    wanted = f"set a valid one ({tmp_path / '.env'} HERMES_CUSTOM_API_KEY)"
    assert said == f"custom wants an API key (401): {wanted}"


@pytest.mark.parametrize(
    ("base_url", "wire", "advice"),
    [
        ("http://127.0.0.1:11434", "chat", "set the address http://127.0.0.1:11434/v1"),
        ("http://127.0.0.1:11434/", "responses", "set the address http://127.0.0.1:11434/v1"),
        ("http://127.0.0.1:11434/v1", "chat", "check the address 'http://127.0.0.1:11434/v1'"),
        ("https://api.anthropic.com", "anthropic", "check the address"),
    ],
)
def test_the_error_for_an_address_without_v1_suggests_the_correct_address(
    base_url: str, wire: str, advice: str
) -> None:
    choice = ModelChoice(provider="custom", model="m", base_url=base_url, wire=wire)
    assert advice in str(refusal(choice, 404, {}, b"404 page not found"))
