"""Files that are sent to chats are read up to a limit."""

from pathlib import Path

import pytest

from hermes.entry.platforms.uploads import read_upload
from hermes.types.errors import Rejected
from hermes.types.messages import Attachment

MEGABYTE = 2**20


async def test_a_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    file = Attachment(kind="file", path=str(path))
    with pytest.raises(Rejected, match="can't be read: No such file"):
        await read_upload(file, MEGABYTE)
    path.write_bytes(b"x" * MEGABYTE)
    assert len(await read_upload(file, MEGABYTE)) == MEGABYTE
    path.write_bytes(b"x" * (MEGABYTE + 1))
    with pytest.raises(Rejected, match="is larger than 1 MB"):
        await read_upload(file, MEGABYTE)
