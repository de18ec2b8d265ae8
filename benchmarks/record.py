"""The results of a run."""

import math

import msgspec

from benchmarks.load import Load, Target

SAMPLES = 5


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One measured figure. A field is None if the value was not measured."""

    ours: float
    passthrough: float | None = None
    ideal: float | None = None
    """The figure of the model without a gateway."""


class Record:
    def __init__(self) -> None:
        self.figures: dict[str, Figure] = {}
        self.turns = 0
        """Number of our gateway's good answers."""
        self.errors = 0
        """Number of our gateway's bad answers."""
        self.samples: list[str] = []
        self.notes: list[str] = []
        """Further tables that the report shows."""
        self.loaded = 0.0
        """Total duration of all loads in seconds."""
        self.others = 0.0
        """Seconds of CPU that other processes of the machine used during the loads."""
        self.seconds: dict[str, float] = {}
        """Duration of each phase."""

    @property
    def noise(self) -> float:
        """Average number of cores that other processes of the machine used during the loads."""
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
        """Records a phase that could not be measured."""
        self.errors += 1
        self.samples.append(what)

    def count(self, target: Target, load: Load) -> None:
        """Counts the good and the bad answers of a load. Answers of other targets than our gateway
        are not counted."""
        self.loaded += load.wall
        self.others += load.others
        if target.name == "ours":
            self.turns += len(load.good)
            self.errors += len(load.bad)
        shown = [f"{target.name}: {answer.told()}" for answer in load.bad]
        self.samples += shown[: SAMPLES - len(self.samples)] if len(self.samples) < SAMPLES else []
