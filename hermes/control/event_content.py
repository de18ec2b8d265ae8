"""Reads inbound events: what they add to a conversation, and what they answer."""

from hermes.text.commands import unescaped
from hermes.types.identity import call_place
from hermes.types.messages import Asked, Message, MessageEvent, Pressed, Said, UserMessage


def new_messages(event: MessageEvent) -> tuple[Message, ...]:
    """What the event adds to the conversation."""
    match event.body:
        case Said(text=text, attachments=attachments):
            shared = event.source.chat_kind != "private"
            sender = event.source.user_name if shared else None
            # A doubled slash is how people say that they mean no command.
            said = unescaped(text)
            return (UserMessage(text=said, sender=sender, attachments=attachments),)
        case Asked(messages=messages):
            return messages
        case _:
            return ()


def answer_text(event: MessageEvent) -> str | None:
    """The words with which an event can answer an open question."""
    match event.body:
        case Said(text=text):
            return text
        case Asked(stateless=False, messages=(*_, UserMessage(text=text))):
            return text
        case Pressed(choice=choice):
            return choice
        case _:
            return None


def first_step(asked: Asked) -> int:
    """The step of the first model call after a request."""
    place = call_place(asked.results[0].call) if asked.results else None
    return place.step + 1 if place else 0
