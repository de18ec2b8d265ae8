"""Weak API keys are refused, and a strong key can be created."""

import secrets
from pathlib import Path

import pytest

from hermes.settings.keys import NEW_KEY_ADVICE, create_key, read_key, weakness
from hermes.state.paths import Home
from hermes.types.errors import ConfigError


@pytest.mark.parametrize(
    "key",
    [
        "x",
        "short",
        "15-characters-!",
        "changeme-changeme-changeme",
        "CHANGE_ME_please_now",
        "your-key-goes-in-here",
        "xxxxxxxxxxxxxxxxxxxxxxxx",
        "0000000000000000",
        "----------------",
        "abababababababababab",
        "Tr0ub4dTr0ub4dTr0ub4d",
        "password123456789",
        "Password-1234567890!",
        "0123456789abcdef",
        "0123456789abcdef0123",
        "abcdefghijklmnopqrstuvwxyz",
        "9876543210fedcba",
        "qwertyuiopasdfghjkl",
        "my-secret-api-key-123",
        "hermes-gateway-api-server-key",
        "test-test-key-for-the-server",
        "secretsecretsecret!",
        "correct-horse-battery-staple",
    ],
)
def test_a_key_that_others_could_guess_is_refused(key: str) -> None:
    assert weakness(key)


@pytest.mark.parametrize(
    "key",
    [
        "Qv7rXt2LmB9sKd4wZn6c",
        "sk-9fJ2mQ8xT4vLp",
        "the purple walrus eats 14 tacos",
        "f47ac10b-58cc-4372-a567-0e02b2c3d479",
        "пароль-никто-не-знает",
    ],
)
def test_a_strong_key_of_a_person_is_accepted(key: str) -> None:
    assert weakness(key) is None


def test_random_keys_are_never_refused() -> None:
    for _ in range(2000):
        for key in (secrets.token_urlsafe(32), secrets.token_hex(16), secrets.token_urlsafe(16)):
            assert weakness(key) is None, key


def test_a_new_key_is_strong_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    home = Home(root=tmp_path)
    assert read_key(home) == ""
    first, second = create_key(home), create_key(home)
    assert first != second
    assert read_key(home) == second
    assert home.api_key.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("data", [b"x", b"changeme-changeme\n", b"\xff\xfe\x00"])
def test_an_unusable_key_file_is_refused(tmp_path: Path, data: bytes) -> None:
    home = Home(root=tmp_path)
    home.api_key.write_bytes(data)
    with pytest.raises(ConfigError) as refused:
        read_key(home)
    assert str(home.api_key) in str(refused.value)
    assert NEW_KEY_ADVICE in str(refused.value) or "can't be read" in str(refused.value)
    assert "changeme" not in str(refused.value)
