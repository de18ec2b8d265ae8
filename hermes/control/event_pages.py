"""Pages of the stored events of turns. The readers of one turn share each page."""

from collections import OrderedDict

import anyio

from hermes.control.turnstile import Turnstile
from hermes.state import questions, turns
from hermes.types.events import AgentEvent
from hermes.types.identity import TurnId
from hermes.types.store import Store, Work
from hermes.types.value import Value

CACHED_PAGES = 128
"""Maximum number of cached pages. Each page takes about 16 kB."""


class ReplayPage(Value):
    """Some of the stored events of a turn, with their numbers."""

    events: list[tuple[int, AgentEvent]]
    more: bool
    """Whether later events are stored too."""
    over: bool
    """Whether no process runs the turn, so that no more events will come."""


class EventPages:
    """Reads pages from the store. A page that will never change is read only once, and all readers
    share it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pages: OrderedDict[tuple[TurnId, int], ReplayPage] = OrderedDict()
        self._reading: dict[tuple[TurnId, int], anyio.Event] = {}
        self._turnstile = Turnstile()

    async def read(self, turn: TurnId, after: int) -> ReplayPage:
        """Returns the first page of the events with numbers above `after`."""
        key = turn, after
        while (page := self._pages.get(key)) is None and (read := self._reading.get(key)):
            await read.wait()
        if page is None:
            page = await self._read(key)
        else:
            self._pages.move_to_end(key)
        # Without this pause, a reader whose pages are all cached would never let other tasks run.
        await self._turnstile.enter()
        return page

    async def _read(self, key: tuple[TurnId, int]) -> ReplayPage:
        self._reading[key] = read = anyio.Event()
        try:
            page = await self._store.read(_page, *key)
        finally:
            del self._reading[key]
            read.set()
        # A full page never changes, because new events are stored after it.
        if page.more:
            self._pages[key] = page
            if len(self._pages) > CACHED_PAGES:
                self._pages.popitem(last=False)
        return page


def _page(turn: TurnId, after: int) -> Work[ReplayPage]:
    """Returns the stored events with numbers above `after`, up to the size of a page."""
    page = yield from turns.events_page(turn, after)
    left = ((one.seq, one.after(after)) for one in page.recorded)
    events = [(seq, event) for seq, event in left if event is not None]
    if page.more:
        return ReplayPage(events=events, more=True, over=False)
    row = yield from turns.get(turn)
    over = row is not None and row.state != "running"
    if row is not None and row.state == "suspended":
        # If a suspended turn has no open question, it is not over: a process will soon resume it.
        over = yield from questions.has_open_question(row.id)
    return ReplayPage(events=events, more=False, over=over)
