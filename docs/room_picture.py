"""Makes docs/images/matrix-room.svg: a rendering of the events of a room on a real homeserver.

Run it with `python -m docs.room_picture`.
"""

import tempfile
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import anyio
from rich.console import Console
from rich.table import Table
from rich.text import Text

from docs.capture import COLUMNS, image
from hermes.testing.evening import FirstEvening
from hermes.testing.evening_chats import matrix_evening
from hermes.testing.synapse import remove_shared_synapse

IMAGE = Path(__file__).parent / "images" / "matrix-room.svg"
LABEL = "A rendering of the events of a Matrix room. It is not a picture of a client."
MEMBERSHIPS = {"invite": "invites the agent", "join": "joins the room"}


async def events() -> tuple[list[dict[str, Any]], str]:
    """Plays the first evening of a newcomer, as in `tests/test_evening.py`. Returns the events of
    the room, and the newcomer's id."""
    with tempfile.TemporaryDirectory() as home:
        async with matrix_evening() as chat:
            await FirstEvening(Path(home), chat).play()
            return chat.events(), chat.user


def lines(found: list[dict[str, Any]], person: str) -> Iterator[tuple[str, Text]]:
    """Yields the sender and the text of each line of the picture. `person` is the id of the
    newcomer. A message that was edited is shown with its last text."""
    edits = {
        event["content"]["m.relates_to"]["event_id"]: event["content"]["m.new_content"]["body"]
        for event in found
        if "m.new_content" in event["content"]
    }
    for event in found:
        content, sender = event["content"], "ann" if event["sender"] == person else "agent"
        if membership := MEMBERSHIPS.get(content.get("membership", "")):
            yield sender, Text(membership, "dim italic")
        elif "filename" in content:
            yield sender, Text(f"file: {content['filename']}", "bold")
        elif event["type"] == "m.room.message" and "m.new_content" not in content:
            text = Text(edits.get(event["event_id"], content["body"]))
            yield sender, text.append("  (edited)" if event["event_id"] in edits else "", "dim")


def svg(found: list[dict[str, Any]], person: str) -> str:
    console = Console(file=StringIO(), record=True, width=COLUMNS, force_terminal=True)
    console.print(Text(f"{LABEL}\n", "dim"))
    table = Table.grid(padding=(0, 2))
    for sender, text in lines(found, person):
        table.add_row(Text(sender, "bold green" if sender == "ann" else "bold cyan"), text)
    console.print(table)
    return image(console, "The events of a Matrix room")


def main() -> None:
    try:
        found, person = anyio.run(events)
    finally:
        remove_shared_synapse()
    IMAGE.write_text(svg(found, person), "utf-8")


if __name__ == "__main__":
    main()
