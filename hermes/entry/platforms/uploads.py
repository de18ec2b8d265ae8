"""Reads the files that are sent to chats."""

import anyio

from hermes.types.errors import Rejected
from hermes.types.messages import Attachment


async def read_upload(file: Attachment, limit: int) -> bytes:
    """Returns the content of a file. Raises Rejected if it can't be read or has more than `limit`
    bytes."""
    path = anyio.Path(file.path)
    try:
        if (await path.stat()).st_size > limit:
            raise Rejected(f"the file {path} is larger than {limit // 2**20} MB")
        return await path.read_bytes()
    except OSError as error:
        raise Rejected(f"the file {path} can't be read: {error.strerror}") from error
