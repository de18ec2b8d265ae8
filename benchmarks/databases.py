"""Compares a gateway on PostgreSQL with a gateway on SQLite."""

from benchmarks.load import Plan
from benchmarks.phases import USUAL
from benchmarks.sizes import Sizes
from benchmarks.stage import DISK, Stage
from hermes.testing.postgres import DURABLE, running_postgres


async def postgres(stage: Stage, sizes: Sizes) -> None:
    """Measures turns per second on SQLite and on PostgreSQL, alternately and several times.

    The results have no column for a second database, so the figures of SQLite are in the column of
    the pass-through proxy.
    """
    await stage.behave(USUAL)
    with running_postgres(DURABLE, DISK) as server:
        server.execute("create database hermes")
        other = stage.new_gateway("postgres", store_url=server.url("hermes"))
        try:
            await stage.healthy(other)
            for name, sessions in (("stateless", ""), ("stored", "s")):
                plan = Plan(count=100_000, concurrency=32, seconds=sizes.seconds, sessions=sessions)
                sqlite, ours = await stage.rounds(sizes.rounds, plan, stage.ours, other)
                stage.record.put(f"postgres.{name}", ours.rate, sqlite.rate)
                stage.record.put(f"postgres.cpu.{name}", ours.cpu_each, sqlite.cpu_each)
        finally:
            other.tree.stop()
