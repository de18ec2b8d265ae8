"""Telegram, over the Bot API."""
