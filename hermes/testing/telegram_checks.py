"""Checks the parameters, texts and keyboards of calls to the fake Bot API."""

from typing import TypeVar

import msgspec

from hermes.testing.telegram_html import BadEntities, FormattedText, parse_html
from hermes.testing.telegram_parameters import InlineKeyboard
from hermes.testing.telegram_records import ApiObject, ApiRefusal
from hermes.text.split import utf16_units

T = TypeVar("T")


def formatted_text(
    text: str, mode: str | None, limit: int, *, needed: bool = True
) -> FormattedText:
    """Returns the text as a chat shows it. Raises ApiRefusal if Telegram would refuse the text."""
    try:
        shown = parse_html(text) if mode == "HTML" else FormattedText(text=text)
    except BadEntities as error:
        raise ApiRefusal(400, f"Bad Request: can't parse entities: {error}") from error
    if needed and not shown.text.strip():
        raise ApiRefusal(400, "Bad Request: message text is empty")
    if utf16_units(shown.text.strip()) > limit:
        raise ApiRefusal(400, "Bad Request: message is too long")
    return shown


def checked_keyboard(keyboard: InlineKeyboard | None) -> InlineKeyboard | None:
    """Returns the keyboard. Raises ApiRefusal if Telegram would refuse it."""
    for button in (one for row in (keyboard.inline_keyboard if keyboard else ()) for one in row):
        if not 1 <= len(button.callback_data.encode()) <= 64:
            raise ApiRefusal(400, "Bad Request: BUTTON_DATA_INVALID")
        if not button.text.strip():
            raise ApiRefusal(400, "Bad Request: text buttons are allowed only with text")
    return keyboard


def read_parameters(parameters: ApiObject, kind: type[T]) -> T:
    """Returns the parameters of a call as an object of the type `kind`. Numbers may be given as
    strings, because a form has only strings."""
    try:
        return msgspec.convert(parameters, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ApiRefusal(400, f"Bad Request: {error}") from error
