"""Both databases refuse the same text, in the same way."""

from pathlib import Path

import pytest

from hermes.state.storable import require_storable
from hermes.testing.rows import names, put
from hermes.testing.stores import open_test_store


@pytest.mark.parametrize("text", ["a\0b", "\0", "half \ud800"])
async def test_text_that_can_not_be_stored_is_refused(tmp_path: Path, text: str) -> None:
    async with open_test_store(tmp_path) as store:
        with pytest.raises(UnicodeEncodeError):
            await store.run(put, text)
        await store.run(put, "a")
        assert await store.read(names) == ["a"]
        assert store.trouble is None


def test_the_error_names_the_place() -> None:
    with pytest.raises(UnicodeEncodeError, match="position 1: NUL"):
        require_storable("a\0b")
    require_storable("plain")
