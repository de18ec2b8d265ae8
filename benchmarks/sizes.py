"""How much a run measures."""

import msgspec


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """Counts and bounds of a run."""

    starts: int = 3
    commands: int = 5
    used: int = 200
    """Requests before the memory is read again."""
    latency: int = 100
    """Requests of one round."""
    rounds: int = 4
    seconds: float = 2.5
    """Of each round of throughput."""
    concurrencies: tuple[int, ...] = (1, 8, 32, 128)
    streams: int = 160
    """Of 200 tokens each, in a round."""
    waves: int = 3
    """Turns after another of each stream of the slow model."""
    slow_streams: int = 64
    tools: int = 50
    old: int = 240
    """Turns that a session has when its growth is looked at."""
    grown: int = 3
    """Sessions that grow."""
    crowd: int = 2000
    stored: int = 5000
    replays: int = 200
    """Quick readers of one long run."""
    slow_replays: int = 1000
    uploads: int = 3
    """Large requests, one after another."""
    upload_messages: int = 2_000
    """Messages of a large request that has many."""
    readers: int = 200
    reading: float = 45.0
    """Seconds that readers stall."""
    hostile: float = 1.0
    """Share of the full size of hostile requests."""
    fuzz: int = 20_000
    """Random requests."""
    session_names: int = 10_000
    """Requests with hostile session headers."""
    samples: int = 100_000
    """Wrong keys whose check is timed."""
    reader_minutes: float = 5.0
    """How long slow readers come back whenever they are cut off."""
    soak_minutes: float = 20.0


USUAL = Sizes()
FULL = Sizes(rounds=6, seconds=4.0, latency=200, waves=5, grown=6)
