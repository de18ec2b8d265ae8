"""Formats the results of a run as a table for people and as JSON."""

import os
import platform
import time
from pathlib import Path

import msgspec

from benchmarks.bars import BARS, Bar
from benchmarks.record import Figure, Record

HEAD = "| measure | pass-through | ours | bar | holds |\n|---|---:|---:|---:|---|"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    bar: Bar
    figure: Figure

    @property
    def missed(self) -> bool:
        return self.bar.binding and self.bar.holds(self.figure) is False

    def shown(self) -> str:
        bar, figure = self.bar, self.figure
        least = "–" if figure.passthrough is None else f"{figure.passthrough:,.{bar.digits}f}"
        holds = bar.holds(figure)
        verdict = "" if holds is None else "yes" if holds else "**no**"
        if verdict and not bar.binding:
            verdict += " (informational on this machine)"
        ours = f"{figure.ours:,.{bar.digits}f}"
        return f"| {bar.measure} | {least} | {ours} | {bar.described(figure)} | {verdict} |"


def rows(record: Record) -> list[Row]:
    """Returns a row of the table for each measured figure, in the order of `BARS`."""
    figures = {**record.figures, "errors": Figure(ours=record.errors)}
    return [Row(bar=bar, figure=figures[bar.key]) for bar in BARS if bar.key in figures]


def table(record: Record) -> str:
    return "\n".join([HEAD, *(row.shown() for row in rows(record))])


def context(record: Record, disk: str) -> str:
    """Describes the conditions of the measurement."""
    lines = [
        f"{record.turns:,} turns of the gateway; {os.cpu_count()} cores, {platform.machine()},"
        f" Python {platform.python_version()}, {platform.system()}, home on {disk};"
        f" other processes used {record.noise:.1f} cores."
    ]
    return "\n".join([*lines, *(f"incomplete answer: {sample}" for sample in record.samples)])


class Saved(msgspec.Struct, kw_only=True):
    """The stored form of one run."""

    at: float
    python: str
    cores: int | None
    disk: str
    turns: int
    errors: int
    samples: list[str]
    noise: float
    seconds: dict[str, float]
    figures: dict[str, Figure]
    missed: list[str]


def save(record: Record, disk: str, path: Path) -> None:
    saved = Saved(
        at=time.time(),
        python=platform.python_version(),
        cores=os.cpu_count(),
        disk=disk,
        turns=record.turns,
        errors=record.errors,
        samples=record.samples,
        noise=record.noise,
        seconds=record.seconds,
        figures=record.figures,
        missed=[row.bar.key for row in rows(record) if row.missed],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(saved)))
