"""The results of one run of the benchmarks."""

import math

import msgspec

from benchmarks.load import Load, Target

SAMPLES = 5


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One measured figure. A field is None if the value was not measured."""

    ours: float
    passthrough: float | None = None
    ideal: float | None = None
    """The value that was measured without a gateway, by calling the model directly."""


class Record:
    def __init__(self) -> None:
        self.figures: dict[str, Figure] = {}
        self.turns = 0
        """Number of complete answers of our gateway."""
        self.errors = 0
        """Number of failed or incomplete answers of our gateway."""
        self.samples: list[str] = []
        self.notes: list[str] = []
        """Tables that are printed before the table of the figures."""
        self.loaded = 0.0
        """Total duration of all loads in seconds."""
        self.others = 0.0
        """Seconds of CPU that other processes of the machine used during the loads."""
        self.seconds: dict[str, float] = {}
        """Maps the name of each phase to its duration in seconds."""

    @property
    def noise(self) -> float:
        """Average number of cores that other processes of the machine used while loads were
        measured."""
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
        """Adds the good and the bad answers of a load to `turns` and `errors`, if the target is our
        gateway. Answers of other targets are not counted."""
        self.loaded += load.wall
        self.others += load.others
        if target.name == "ours":
            self.turns += len(load.good)
            self.errors += len(load.bad)
        shown = [f"{target.name}: {answer.told()}" for answer in load.bad]
        self.samples += shown[: SAMPLES - len(self.samples)] if len(self.samples) < SAMPLES else []
