"""The migrations form one numbered list that only grows."""

import hashlib

from hermes.state.schema import MIGRATIONS

RELEASED = {
    "m001_spine": "07946a71ec1da965",
    "m002_core": "7508431242c8a00b",
}
"""Hashes of the migrations that have been released: databases exist that have run them."""


def test_migrations_are_numbered() -> None:
    assert [name[:5] for name, _ in MIGRATIONS] == [
        f"m{number:03}_" for number in range(1, len(MIGRATIONS) + 1)
    ]


def test_a_released_migration_is_never_edited() -> None:
    hashes = {name: hashlib.sha256(script.encode()).hexdigest()[:16] for name, script in MIGRATIONS}
    assert hashes.items() >= RELEASED.items()
