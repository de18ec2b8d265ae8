"""Records the resources that a process uses over a long time, and measures whether they grow."""

import statistics
from collections.abc import Sequence

import msgspec

HEAD = (
    "| minute | starts | RSS, MB | RSS at most | descriptors | at most | threads | at most"
    " | turns | attacks | database, MB |\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
)


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """The resources that a gateway used at one moment."""

    at: float
    """Seconds since the beginning of the soak."""
    starts: int
    """How often the gateway had been started at this moment."""
    rss: float
    """Resident memory in megabytes."""
    descriptors: int
    threads: int
    turns: int
    """Number of answers so far."""
    attacks: int
    """Number of attacks so far."""
    stored: float
    """Size of the database and its WAL, in megabytes."""


class Minute(msgspec.Struct, frozen=True, kw_only=True):
    """The samples of one minute. The last minute may be incomplete."""

    number: int
    starts: int
    rss: float
    """The median of the samples, in megabytes."""
    most_rss: float
    descriptors: float
    most_descriptors: int
    threads: float
    most_threads: int
    turns: int
    """Number of answers in this minute."""
    attacks: int
    stored: float

    def shown(self) -> str:
        cells = (
            f"{self.number}",
            f"{self.starts}",
            f"{self.rss:.0f}",
            f"{self.most_rss:.0f}",
            f"{self.descriptors:.0f}",
            f"{self.most_descriptors}",
            f"{self.threads:.0f}",
            f"{self.most_threads}",
            f"{self.turns:,}",
            f"{self.attacks:,}",
            f"{self.stored:.0f}",
        )
        return f"| {' | '.join(cells)} |"


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """How much the resources of a process grew after its warm-up."""

    rss: float
    descriptors: float
    threads: float


def minutes(samples: Sequence[Sample], seconds: float = 60.0) -> list[Minute]:
    """Divides the samples into periods of `seconds` seconds, usually a minute, and returns a
    summary of each period."""
    found: list[Minute] = []
    turns = attacks = 0
    for number in range(1, int(samples[-1].at // seconds) + 2):
        own = [one for one in samples if number - 1 <= one.at / seconds < number]
        if not own:
            continue
        found.append(
            Minute(
                number=number,
                starts=own[-1].starts,
                rss=statistics.median(one.rss for one in own),
                most_rss=max(one.rss for one in own),
                descriptors=statistics.median(one.descriptors for one in own),
                most_descriptors=max(one.descriptors for one in own),
                threads=statistics.median(one.threads for one in own),
                most_threads=max(one.threads for one in own),
                turns=own[-1].turns - turns,
                attacks=own[-1].attacks - attacks,
                stored=own[-1].stored,
            )
        )
        turns, attacks = own[-1].turns, own[-1].attacks
    return found


def growth(samples: Sequence[Sample], warm_up: float) -> Growth:
    """Compares the resources that the last gateway process used in the first third of its life with
    those in the last third.

    The first `warm_up` seconds of the process are left out, because its caches fill in that time.
    """
    last = [one for one in samples if one.starts == samples[-1].starts]
    last = [one for one in last if one.at - last[0].at >= warm_up] or last
    third = max(1, len(last) // 3)
    early, late = last[:third], last[-third:]

    def grown(values: Sequence[float], before: Sequence[float]) -> float:
        return statistics.median(values) - statistics.median(before)

    return Growth(
        rss=grown([one.rss for one in late], [one.rss for one in early]),
        descriptors=grown([one.descriptors for one in late], [one.descriptors for one in early]),
        threads=grown([one.threads for one in late], [one.threads for one in early]),
    )


def table(rows: Sequence[Minute]) -> str:
    return "\n".join([HEAD, *(row.shown() for row in rows)])
