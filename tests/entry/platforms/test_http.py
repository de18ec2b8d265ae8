"""HTTP statuses become Hermes errors, and files that can't be sent are rejected."""

from pathlib import Path

import pytest

from hermes.entry.platforms.http import (
    PlatformResponse,
    PlatformSession,
    decoded,
    decoded_or,
    error_for_status,
    read_attachment,
)
from hermes.types.errors import (
    AuthFailed,
    Disconnected,
    HermesError,
    RateLimited,
    Rejected,
    TargetGone,
)
from hermes.types.messages import Attachment


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Rejected),
        (401, AuthFailed),
        (403, TargetGone),
        (429, RateLimited),
        (502, Disconnected),
    ],
)
def test_a_status_has_its_error(status: int, kind: type[HermesError]) -> None:
    response = PlatformResponse(status=status, headers={}, body=b"")
    error = error_for_status(response, "no", None)
    assert type(error) is kind
    assert error.retry_after is None or status != 429


@pytest.mark.parametrize(
    ("header", "pause", "expected"),
    [("7", None, 7.0), ("7", 0.5, 0.5), ("", None, None), ("Fri, 31 Dec 2027", None, None)],
)
def test_the_body_or_the_header_says_how_long_to_wait(
    header: str, pause: float | None, expected: float | None
) -> None:
    response = PlatformResponse(status=429, headers={"Retry-After": header}, body=b"")
    assert error_for_status(response, "slow down", pause).retry_after == expected


def test_an_unexpected_result_counts_as_a_broken_connection() -> None:
    assert decoded(b"[1]", list[int]) == [1]
    with pytest.raises(Disconnected):
        decoded(b"[1]", list[str])


async def test_a_file_that_can_not_be_sent_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    file = Attachment(kind="file", path=str(tmp_path / "a"))
    assert await read_attachment(file, 5, "Matrix") == b"12345"
    with pytest.raises(Rejected, match="limit of Matrix"):
        await read_attachment(file, 4, "Matrix")
    with pytest.raises(Rejected, match="can't be read"):
        await read_attachment(Attachment(kind="file", path=str(tmp_path / "b")), 5, "Matrix")


@pytest.mark.parametrize("data", [b'["a"]', b"{}", b"not JSON"])
def test_a_malformed_value_is_replaced_by_the_default(data: bytes) -> None:
    assert decoded_or(7, b"8") == 8
    assert decoded_or(7, data) == 7


async def test_a_session_is_closed_when_its_last_user_leaves() -> None:
    shared, closed = PlatformSession("http://127.0.0.1:9"), list[bool]()
    async with shared.open() as first:
        async with shared.open() as second:
            assert first is second
        closed.append(first.closed)
    closed.append(first.closed)
    assert closed == [False, True]
