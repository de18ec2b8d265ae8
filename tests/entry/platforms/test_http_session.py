"""The HTTP session of an account is shared by all its calls."""

from hermes.entry.platforms.http_session import ReusedSession


async def test_the_session_is_closed_after_the_last_use_and_opened_again() -> None:
    shared = ReusedSession()
    async with shared.open() as first:
        async with shared.open() as second:
            assert second is first
        kept = first.closed
    assert [kept, first.closed] == [False, True]
    async with shared.open() as third:
        assert not third.closed
