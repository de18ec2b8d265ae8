"""Stores long messages piece by piece before they are accepted, so that no long commit delays other
transactions."""

import anyio.to_thread

from hermes.control.event_content import new_messages
from hermes.state import bodies
from hermes.state.codec import encode
from hermes.types.messages import Asked, MessageEvent
from hermes.types.store import Store


async def store_long_bodies(store: Store, event: MessageEvent) -> None:
    """Stores the long texts of the event in pieces, with a separate commit for each piece. The
    event itself is stored later. If the event is never stored, the maintenance deletes the
    pieces."""
    if not _is_long(event):
        return
    for name, body in await anyio.to_thread.run_sync(_long_bodies, event):
        for index, piece in enumerate(bodies.split(body)):
            await store.run(bodies.add_piece, name, index, piece)


def _is_long(event: MessageEvent) -> bool:
    """Returns whether the texts of the event are so long that they are stored in pieces."""
    size = sum(len(message.text) for message in new_messages(event))
    if isinstance(event.body, Asked):
        size += sum(len(result.text) for result in event.body.results)
    return size > bodies.LONG_BYTES


def _long_bodies(event: MessageEvent) -> list[tuple[str, bytes]]:
    """Returns the long bodies of the event's rows as pairs: the name under which the pieces of the
    body are stored, and the body."""
    values: list[object] = [event]
    results = event.body.results if isinstance(event.body, Asked) else ()
    if results or not (isinstance(event.body, Asked) and event.body.stateless):
        values += (*results, *new_messages(event))
    encoded = map(encode, values)
    return [(bodies.digest(body), body) for body in encoded if len(body) > bodies.LONG_BYTES]
