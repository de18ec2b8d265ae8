"""Secrets are redacted in text and in the log."""

import io
import logging
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.text.redact import FixedFields, RedactingFilter, mask, redact, redact_tokens

A35 = "AAH-abcdefghij_klmnopqrstuvwxyz0123"
SECRETS = [
    "sk-proj-abcdefghijklmnop1234",
    "sk-ant-api03-abcdefghijklmnop",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "gho_abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_11ABCDEFG0abcdefghij_klmnop",
    "xoxb-1234567890-abcdefghij",
    "xapp-1-A0123456789-abcdefghij",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA-abcdefghijklmnopqrstuvwxyz01234",
    f"123456789:{A35}",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "sk_live_abcdefghijklmnop12345678",
    "gsk_abcdefghijklmnop12345678",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "around", ["{}", "it is {}, keep it", "https://h/bot{}/x", '{{"a": "{}"}}']
)
def test_text_that_looks_like_a_secret_is_masked(secret: str, around: str) -> None:
    if around.startswith("https") and not secret[0].isdigit():
        around = around.replace("bot", "")
    assert redact(around.format(secret)) == around.format(mask(secret))


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Authorization: Bearer abc123def", "Authorization: Bearer …"),
        ("token: bearer abc123def", "token: bearer …"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic …"),
        ("password=hunter2&x=1", "password=…&x=1"),
        ("DB_PASSWORD = 'two words'", "DB_PASSWORD = '…'"),
        ('{"api_key": "a\\"b", "n": 1}', '{"api_key": "…", "n": 1}'),
        ("X-Api-Key: abcdefghijklmnopqrstuvwxyz", "X-Api-Key: abcd…yz"),
        ("aws_secret_access_key: wJalrXUtn", "aws_secret_access_key: …"),
        ("https://u.example/?access_token=abcdef", "https://u.example/?access_token=…"),
        ("postgres://me:p@ss:w@db:5432/x", "postgres://me:…@db:5432/x"),
        ("redis://:secretword@db", "redis://:…@db"),
    ],
)
def test_a_value_assigned_to_a_secret_name_is_masked(text: str, redacted: str) -> None:
    assert redact(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        *("max_tokens=4096", "a risk-assessment-of-everything", "token=", "password: ${PASSWORD}"),
        *(
            "https://example.com:8080/a@b",
            "10:30",
            "the bearer of it",
            "12345678:short",
            "sk-short",
        ),
    ],
)
def test_ordinary_text_is_not_changed(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("A=1\nMY_DB_PASSWORD=hunter2\nB=2", "A=1\nMY_DB_PASSWORD=…\nB=2"),
        ("./.env:3:export SMTP_PASS='two words'", "./.env:3:export SMTP_PASS='…'"),
        ('"Env": ["STRIPE_SECRET=abcdef",', '"Env": ["STRIPE_SECRET=…",'),
    ],
)
def test_an_environment_variable_with_a_secret_name_is_always_masked(
    text: str, hidden: str
) -> None:
    assert redact_tokens(text) == hidden


@pytest.mark.parametrize(
    "text",
    [
        *("PWD=/home/me/work", "OLDPWD=/home/me/work", "SSH_AUTH_SOCK=/tmp/agent.1"),
        *('TOKEN="$(cat token)"', "API_KEY=$KEY", "API_KEY=your-key-here", "API_KEY=<the key>"),
        *("if TOKEN==other_token:", 'API_KEY = os.environ["API_KEY"]', "password = 'hunter2'"),
    ],
)
def test_code_and_examples_are_not_masked(text: str) -> None:
    assert redact_tokens(text) == text


def test_a_private_key_is_masked_to_its_end() -> None:
    body = "\nDEK-Info: AES-128\n\nMIIE\nabc=\n"
    key = f"-----BEGIN RSA PRIVATE KEY-----{body}-----END RSA PRIVATE KEY-----"
    assert redact(f"a\n{key}\nb") == "a\n-----BEGIN RSA PRIVATE KEY-----\nDEK…--\nb"
    assert "MIIE" not in redact(key[:60])


def test_long_known_secrets_are_masked_first_and_short_ones_are_not_masked() -> None:
    secrets = ["hunter", "hunter-and-more", "abc"]
    assert redact("hunter-and-more hunter abc", secrets) == "… … abc"


@settings(deadline=None)
@given(st.text(), st.from_regex(r"[a-z0-9]{6,40}", fullmatch=True), st.text())
def test_a_known_secret_is_never_shown(before: str, secret: str, after: str) -> None:
    assert secret not in redact(before + secret + after, [secret])


@settings(deadline=None)
@given(st.text())
def test_a_hint_is_short(secret: str) -> None:
    assert mask(secret) == "…" or (len(mask(secret)) == 7 and len(secret) >= 20)


@pytest.mark.parametrize(
    "seed",
    [
        *("eyJ", "eyJaaaaaaaa.", "sk-", "://a:", "://", "password=", "token: '", "12345678:"),
        *("-----BEGIN PRIVATE KEY-----", "-", "a@", 'secret="\\', "bearer ", "secret_access_"),
        *("A_KEY=", "A_KEY", "K", "gsk_"),
    ],
)
def test_hostile_text_is_redacted_in_limited_time(seed: str) -> None:
    text = seed * (200_000 // len(seed))
    began = time.monotonic()
    redact(text)
    assert time.monotonic() - began < 5


def logged(format_string: str, *args: object, error: Exception | None = None) -> str:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(RedactingFilter(["opensesame"]))
    info = (type(error), error, None) if error else None
    record = logging.LogRecord("n", logging.INFO, "p", 1, format_string, args, info)
    record.stack_info = "stack opensesame" if error else None
    handler.handle(record)
    return stream.getvalue()


def test_a_log_line_contains_no_secret() -> None:
    assert logged("key %s of %r", "opensesame", 7) == "key … of 7\n"


def test_a_traceback_contains_no_secret() -> None:
    assert logged("failed", error=ValueError("opensesame")) == "failed\nValueError: …\nstack …\n"


def test_a_log_call_with_wrong_arguments_is_still_logged() -> None:
    assert logged("%d and %d", "opensesame") == "%d and %d ('…',)\n"


def test_a_message_with_fixed_fields_is_not_redacted() -> None:
    record = logging.LogRecord("n", logging.INFO, "p", 1, FixedFields("of %(who)s"), (), None)
    record.args = {"who": "somebody"}
    assert RedactingFilter(["opensesame"]).filter(record)
    assert record.args == {"who": "somebody"}
    assert record.getMessage() == "of somebody"


def test_a_record_keeps_its_named_fields_without_secrets() -> None:
    fields = {"steps": 2, "reason": "opensesame is 100% wrong"}
    record = logging.LogRecord("n", logging.INFO, "p", 1, "%(steps)d: %(reason)s", (fields,), None)
    redacting = RedactingFilter(["opensesame"])
    assert redacting.filter(record)
    assert redacting.filter(record)
    assert record.args == {"steps": 2, "reason": "… is 100% wrong"}
    assert record.getMessage() == "2: … is 100% wrong"
