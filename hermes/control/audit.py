"""Finds everything that a message has caused: its turn, the tool calls, and the messages that were
sent."""

from hermes.state import audit
from hermes.state.audit import AuditedToolCall, AuditTrail
from hermes.types.errors import HermesError
from hermes.types.store import Work

__all__ = ["AuditTrail", "AuditedToolCall"]


class UnknownMessage(HermesError):
    code = "unknown_message"
    status = 404


def find_trail(name: str) -> Work[AuditTrail]:
    """Returns everything that the store knows about a message or a turn. `name` is the id or the
    dedupe key of the message, or the id of the turn. Raises UnknownMessage if the store knows no
    such message or turn."""
    found = yield from audit.trail(name)
    if found is None:
        raise UnknownMessage(
            f"there is no message or turn {name!r}: give the id from the log, or name a message"
            " of a platform, as in telegram:CHAT:ID or matrix:EVENT. Old messages are deleted after"
            " retention.inbox_days."
        )
    return found
