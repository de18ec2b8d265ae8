"""Pages of the stored events of turns; the readers of one run share what is read for them."""

from collections import OrderedDict

import anyio

from hermes.control.turnstile import Turnstile
from hermes.state import turns
from hermes.types.events import AgentEvent
from hermes.types.identity import TurnId
from hermes.types.store import Store, Work
from hermes.types.value import Value

CACHED_PAGES = 128
"""Pages that are held for other readers, each of about 16 kB."""


class ReplayPage(Value):
    """Some of the stored events of a turn, with their numbers."""

    events: list[tuple[int, AgentEvent]]
    more: bool
    """Later events are stored too."""
    over: bool
    """No process runs the turn, so no more events will come."""


class EventPages:
    """Reads pages from the store. A page that will never change is read once for many readers."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pages: OrderedDict[tuple[TurnId, int], ReplayPage] = OrderedDict()
        self._reading: dict[tuple[TurnId, int], anyio.Event] = {}
        self._turnstile = Turnstile()

    async def read(self, turn: TurnId, after: int) -> ReplayPage:
        """The first stored events after a number."""
        key = turn, after
        while (page := self._pages.get(key)) is None and (read := self._reading.get(key)):
            await read.wait()
        if page is None:
            page = await self._read(key)
        else:
            self._pages.move_to_end(key)
        # Readers that find every page here would keep all other requests waiting.
        await self._turnstile.enter()
        return page

    async def _read(self, key: tuple[TurnId, int]) -> ReplayPage:
        self._reading[key] = read = anyio.Event()
        try:
            page = await self._store.read(_page, *key)
        finally:
            del self._reading[key]
            read.set()
        # Events are only ever added behind the last page.
        if page.more:
            self._pages[key] = page
            if len(self._pages) > CACHED_PAGES:
                self._pages.popitem(last=False)
        return page


def _page(turn: TurnId, after: int) -> Work[ReplayPage]:
    """The first events after a number, as far as checkpoints have stored them."""
    page = yield from turns.events_page(turn, after)
    left = ((one.seq, one.after(after)) for one in page.recorded)
    events = [(seq, event) for seq, event in left if event is not None]
    if page.more:
        return ReplayPage(events=events, more=True, over=False)
    row = yield from turns.get(turn)
    over = row is not None and row.state != "running"
    return ReplayPage(events=events, more=False, over=over)
