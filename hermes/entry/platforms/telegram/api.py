"""Calls the methods of the Bot API, and translates its errors into ours."""

from collections.abc import Mapping
from typing import TypeVar

import aiohttp
import msgspec

from hermes.entry.platforms.http import (
    CALL_SECONDS,
    FILE_SECONDS,
    PlatformRequest,
    PlatformSession,
    decoded,
)
from hermes.entry.platforms.telegram.schema import DOWNLOAD_BYTES, RemoteFile, Response
from hermes.types import errors
from hermes.types.messages import Attachment
from hermes.types.value import Value

T = TypeVar("T")


class ChatMoved(errors.Rejected):
    """Raised for a call to a group that has become a supergroup."""

    def __init__(self, said: str, chat_id: str) -> None:
        super().__init__(f"{said} (the chat has the new id {chat_id})")
        self.chat_id = chat_id


class Upload(Value):
    """A file that is sent with a call."""

    field: str
    """The name of the parameter that holds the file in the call."""
    file: Attachment
    data: bytes


def error_for(status: int, response: Response) -> errors.HermesError:
    """Returns the error for a call that failed with this HTTP status."""
    said = response.description or f"HTTP status {status}"
    match status:
        case 401 | 404:
            return errors.AuthFailed(f"Telegram does not know the bot's token: {said}")
        case 429:
            return errors.RateLimited(said, response.parameters.get("retry_after"))
        case 409:
            return errors.Disconnected(f"another program receives the bot's updates: {said}")
        case 400 | 403 if status == 403 or "chat not found" in said:
            return errors.TargetGone(said)
        case 400 if "can't parse entities" in said:
            return errors.FormatRefused(said)
        case 400 | 413:
            moved = response.parameters.get("migrate_to_chat_id")
            return ChatMoved(said, str(moved)) if moved else errors.Rejected(said)
        case _:
            return errors.Disconnected(said)


class BotApi:
    """Calls a Bot API server as one bot. No error that this class raises contains the token."""

    def __init__(self, base_url: str, token: str) -> None:
        self._token = token
        self._http = PlatformSession(base_url)
        self.open = self._http.open

    async def call(
        self,
        method: str,
        returns: type[T],
        parameters: Mapping[str, object],
        upload: Upload | None = None,
        wait: float = 0.0,
    ) -> T:
        """Calls a method. A parameter that is None is not sent.

        `wait` is the time in seconds that the call may take in addition to the usual time.
        """
        given = {name: value for name, value in parameters.items() if value is not None}
        request = PlatformRequest(
            method="POST",
            path=f"bot{self._token}/{method}",
            name=method,
            body=_form(given, upload) if upload else given,
            seconds=(FILE_SECONDS if upload else CALL_SECONDS) + wait,
        )
        answer = await self._http.send(request)
        try:
            response = msgspec.json.decode(answer.body, type=Response)
        except msgspec.MsgspecError:
            status = answer.status if answer.status >= 400 else 502
            raise error_for(status, Response(ok=False)) from None
        if not response.ok:
            raise error_for(answer.status, response)
        return decoded(response.result, returns)

    async def download(self, file_id: str) -> bytes:
        """Returns the content of a file. Raises Rejected if it is too large or does not exist."""
        file = await self.call("getFile", RemoteFile, {"file_id": file_id})
        if file.file_size > DOWNLOAD_BYTES:
            raise errors.Rejected("the file is larger than 20 MB")
        request = PlatformRequest(
            method="GET",
            path=f"file/bot{self._token}/{file.file_path}",
            name="the download of a file",
            seconds=FILE_SECONDS,
        )
        answer = await self._http.send(request)
        if answer.status == 404:
            raise errors.Rejected("the file is no longer there")
        if answer.status != 200:
            raise error_for(answer.status, Response(ok=False))
        return answer.body


def _form(parameters: Mapping[str, object], upload: Upload) -> aiohttp.FormData:
    form = aiohttp.FormData({name: str(value) for name, value in parameters.items()})
    name, media_type = upload.file.file_name, upload.file.media_type
    form.add_field(upload.field, upload.data, filename=name, content_type=media_type)
    return form
