"""People who were admitted by pairing are known."""

from pathlib import Path

from hermes.state.access import load_paired
from hermes.testing.running import rows
from hermes.testing.stores import open_test_store


async def test_every_paired_user_is_known_as_a_person(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        assert await store.read(load_paired) == {}
        for platform, user, person in (
            ("telegram", "7", "ann"),
            ("discord", "7", "bob"),
            ("discord", "8", "ann"),
        ):
            await rows(
                store,
                "insert into access (platform, user_id, person, role, granted_by, granted_at)"
                " values (?, ?, ?, 'user', 'operator', 0)",
                platform,
                user,
                person,
            )
        assert await store.read(load_paired) == {
            ("telegram", "7"): "ann",
            ("discord", "7"): "bob",
            ("discord", "8"): "ann",
        }
