"""Receives the updates that Telegram delivers over HTTP."""

import hmac
import logging
from urllib.parse import urlsplit

import msgspec

from hermes.entry.platforms.telegram.adapter import TelegramAdapter
from hermes.entry.platforms.telegram.manifest import TelegramConfig, webhook_url
from hermes.entry.platforms.telegram.schema import Update
from hermes.types.platforms import WebhookRequest, WebhookResponse, WebhookRoute
from hermes.types.protocols import Accept

log = logging.getLogger(__name__)

SECRET_HEADER = "x-telegram-bot-api-secret-token"  # noqa: S105  # the name of a header


def webhook_route(account: str, config: TelegramConfig) -> WebhookRoute:
    """Returns the route of an account. It accepts only requests with the configured secret."""
    adapter = TelegramAdapter(account, config)

    async def receive(request: WebhookRequest, accept: Accept) -> WebhookResponse:
        given = request.headers.get(SECRET_HEADER, "")
        if not hmac.compare_digest(given.encode(), config.webhook_secret.encode()):
            return WebhookResponse(status=401)
        try:
            update = msgspec.json.decode(request.body, type=Update)
        except msgspec.MsgspecError as error:
            # After an error status, Telegram would deliver the update again and again.
            log.error("an update of %s can't be read: %s", account, error)
            return WebhookResponse()
        await adapter.receive(update, accept)
        return WebhookResponse()

    path = urlsplit(webhook_url(account, config)).path
    return WebhookRoute(method="POST", path=path, handler=receive, fetch=adapter.fetch)
