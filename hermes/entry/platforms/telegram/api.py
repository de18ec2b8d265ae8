"""Calls the methods of the Bot API, and translates its errors into ours."""

from collections.abc import Mapping
from typing import TypeVar

import aiohttp
import msgspec

from hermes.entry.platforms.http_session import ReusedSession
from hermes.entry.platforms.telegram.schema import DOWNLOAD_BYTES, RemoteFile, Response
from hermes.types.errors import AuthFailed, Disconnected, HermesError, RateLimited, Rejected
from hermes.types.value import Value

T = TypeVar("T")

CALL_SECONDS, FILE_SECONDS = 30.0, 300.0
"""Time limit of a call, and time limit of a call that transfers a file."""


class ChatMoved(Rejected):
    """Raised for a call to a group that has become a supergroup."""

    def __init__(self, said: str, chat_id: str) -> None:
        super().__init__(f"{said} (the chat has the new id {chat_id})")
        self.chat_id = chat_id


class Upload(Value):
    """A file that is sent with a call, as the parameter `field`."""

    field: str
    name: str
    media_type: str
    data: bytes


def error_for(status: int, response: Response) -> HermesError:
    """Returns the error for a call that failed with this HTTP status."""
    said = response.description or f"HTTP status {status}"
    match status:
        case 401 | 404:
            return AuthFailed(f"Telegram does not know the bot's token: {said}")
        case 429:
            return RateLimited(said, response.parameters.get("retry_after"))
        case 409:
            return Disconnected(f"another program receives the bot's updates: {said}")
        case 400 | 403 | 413:
            moved = response.parameters.get("migrate_to_chat_id")
            return ChatMoved(said, str(moved)) if moved else Rejected(said)
        case _:
            return Disconnected(said)


class BotApi:
    """One bot on one Bot API server. No error that it raises contains the token."""

    def __init__(self, base_url: str, token: str) -> None:
        self._methods = f"{base_url}/bot{token}"
        self._files = f"{base_url}/file/bot{token}"
        self.open = ReusedSession().open

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
        data = _form(parameters, upload) if upload else _json(parameters)
        timeout = aiohttp.ClientTimeout(total=(FILE_SECONDS if upload else CALL_SECONDS) + wait)
        url = f"{self._methods}/{method}"
        try:
            async with (
                self.open() as session,
                session.post(url, data=data, timeout=timeout) as answer,
            ):
                status, body = answer.status, await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _cut(method, error) from None
        try:
            response = msgspec.json.decode(body, type=Response)
        except msgspec.MsgspecError:
            raise error_for(status if status >= 400 else 502, Response(ok=False)) from None
        if not response.ok:
            raise error_for(status, response)
        try:
            return msgspec.json.decode(response.result, type=returns)
        except msgspec.MsgspecError as error:
            raise Disconnected(f"{method} returned an unexpected result: {error}") from error

    async def download(self, file_id: str) -> bytes:
        """Returns the content of a file. Raises Rejected if it is too large or does not exist."""
        file = await self.call("getFile", RemoteFile, {"file_id": file_id})
        if file.file_size > DOWNLOAD_BYTES:
            raise Rejected("it is larger than 20 MB")
        timeout = aiohttp.ClientTimeout(total=FILE_SECONDS)
        try:
            async with (
                self.open() as session,
                session.get(f"{self._files}/{file.file_path}", timeout=timeout) as answer,
            ):
                if answer.status == 404:
                    raise Rejected("the file is no longer there")
                if answer.status != 200:
                    raise error_for(answer.status, Response(ok=False))
                return await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _cut("the download of a file", error) from None


def _json(parameters: Mapping[str, object]) -> aiohttp.BytesPayload:
    given = {name: value for name, value in parameters.items() if value is not None}
    return aiohttp.BytesPayload(msgspec.json.encode(given), content_type="application/json")


def _form(parameters: Mapping[str, object], upload: Upload) -> aiohttp.FormData:
    form = aiohttp.FormData({name: str(value) for name, value in parameters.items()})
    form.add_field(upload.field, upload.data, filename=upload.name, content_type=upload.media_type)
    return form


def _cut(call: str, error: Exception) -> Disconnected:
    # The original error is not attached: its text may contain the URL and so the token.
    return Disconnected(f"{call} failed: {type(error).__name__}")
