"""Only the process that serves an account can move its cursor."""

from pathlib import Path

import pytest

from hermes.state import cursors, owners
from hermes.testing.rows import NOW, THEM, US
from hermes.testing.stores import open_test_store
from hermes.types.errors import ClaimLost


async def test_a_cursor_is_kept_for_each_account(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        for account in ("chat", "chat.support"):
            assert await store.run(cursors.load, account) is None
            epoch = await store.run(owners.claim_lease, f"account:{account}", US, set(), NOW)
            assert epoch is not None
            for value in ("first", f"token of {account}"):
                await store.run(cursors.save, account, value, (US, epoch))
        assert await store.run(cursors.load, "chat") == "token of chat"
        assert await store.run(cursors.load, "chat.support") == "token of chat.support"


async def test_a_process_that_lost_the_account_can_t_overwrite_the_cursor(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        with pytest.raises(ClaimLost, match="chat is now served by another process"):
            await store.run(cursors.save, "chat", "never held", (US, 1))
        ours = await store.run(owners.claim_lease, "account:chat", US, set(), NOW)
        assert ours is not None
        await store.run(cursors.save, "chat", "ours", (US, ours))
        theirs = await store.run(owners.claim_lease, "account:chat", THEM, {US}, NOW)
        assert theirs is not None
        for stale in ((US, ours), (US, theirs), (THEM, ours)):
            with pytest.raises(ClaimLost):
                await store.run(cursors.save, "chat", "stale", stale)
        assert await store.run(cursors.load, "chat") == "ours"
        await store.run(cursors.save, "chat", "theirs", (THEM, theirs))
        assert await store.run(cursors.load, "chat") == "theirs"
