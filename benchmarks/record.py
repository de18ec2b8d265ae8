"""What a run found out, figure by figure."""

import math

import msgspec

from benchmarks.load import Load, Target

SAMPLES = 5


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One measure; what has no such figure has None."""

    ours: float
    passthrough: float | None = None
    ideal: float | None = None
    """What the model alone reached."""


class Record:
    def __init__(self) -> None:
        self.figures: dict[str, Figure] = {}
        self.turns = 0
        """Answers of ours that were good."""
        self.errors = 0
        """Answers of ours that were not."""
        self.samples: list[str] = []
        self.notes: list[str] = []
        """Further tables to be shown."""
        self.loaded = 0.0
        """Seconds under load."""
        self.others = 0.0
        """Seconds of CPU that the rest of the machine used in them."""
        self.seconds: dict[str, float] = {}
        """How long each phase took."""

    @property
    def noise(self) -> float:
        """Cores that the rest of the machine used under load."""
        return max(0.0, self.others / self.loaded) if self.loaded else 0.0

    def put(
        self,
        key: str,
        ours: float,
        passthrough: float | None = None,
        ideal: float | None = None,
    ) -> None:
        if not math.isnan(ours):
            self.figures[key] = Figure(ours=ours, passthrough=passthrough, ideal=ideal)

    def fail(self, what: str) -> None:
        """Remembers a phase that could not be measured."""
        self.errors += 1
        self.samples.append(what)

    def count(self, target: Target, load: Load) -> None:
        """Remembers what failed; only ours is held to it."""
        self.loaded += load.wall
        self.others += load.others
        if target.name == "ours":
            self.turns += len(load.good)
            self.errors += len(load.bad)
        shown = [f"{target.name}: {answer.told()}" for answer in load.bad]
        self.samples += shown[: SAMPLES - len(self.samples)] if len(self.samples) < SAMPLES else []
