"""Compares the CPU time per turn of four gateways with the CPU time of one gateway, on
PostgreSQL."""

import asyncio

from benchmarks.load import Load, Plan, Target, median
from benchmarks.model import Behaviour
from benchmarks.processes import cpu_of
from benchmarks.sizes import Sizes
from benchmarks.stage import DISK, Stage
from hermes.testing.postgres import DURABLE, PostgresProcess, running_postgres

SECOND = Behaviour(ttft=0.5, tokens=20, delay=0.025)
"""A model that takes a second for an answer."""
NODES = 4
TURNS_PER_NODE = 50
WARM_SECONDS = 1.5
_TRANSACTIONS = "select xact_commit, xact_rollback from pg_stat_database where datname = "


async def scale(stage: Stage, sizes: Sizes) -> None:
    """Measures the CPU time per turn of the gateways and PostgreSQL together. Each pair of
    measurements has one gateway first, and then several gateways.

    The table shows the figures of the single gateway in the column of the pass-through proxy.
    """
    await stage.behave(SECOND)
    with running_postgres(DURABLE, DISK) as server:
        alone: list[float] = []
        together: list[float] = []
        for number in range(sizes.pairs):
            alone.append(await _cpu_per_turn(stage, server, f"one{number}", 1, sizes))
            together.append(await _cpu_per_turn(stage, server, f"four{number}", NODES, sizes))
        stage.record.put("scale.cpu", median(together), median(alone))
        names = [f"four{number}" for number in range(sizes.pairs)]
        stage.record.put("scale.reruns", _rerun_share(server, names))


async def _cpu_per_turn(
    stage: Stage, server: PostgresProcess, database: str, count: int, sizes: Sizes
) -> float:
    """Starts `count` gateways. Returns the CPU time per turn in milliseconds, of the gateways and
    the server together."""
    server.execute(f"create database {database}")
    nodes = [
        stage.new_gateway(f"{database}{node}", store_url=server.url(database))
        for node in range(count)
    ]
    try:
        for node in nodes:
            await stage.healthy(node)
        # The first turns are not measured, because they load modules and fill caches.
        await _loaded(stage, nodes, "w", WARM_SECONDS)
        before = _cpu(server, nodes)
        loads = await _loaded(stage, nodes, "s", sizes.scale_seconds)
        spent = _cpu(server, nodes) - before
    finally:
        for node in nodes:
            node.tree.stop()
    return spent * 1000 / sum(len(load.good) for load in loads)


async def _loaded(stage: Stage, nodes: list[Target], prefix: str, seconds: float) -> list[Load]:
    """Puts the same load on all nodes at the same time. Every request begins a new session."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(
                stage.load(
                    node,
                    Plan(
                        count=100_000,
                        concurrency=TURNS_PER_NODE,
                        seconds=seconds,
                        sessions=f"{prefix}{number}",
                    ),
                )
            )
            for number, node in enumerate(nodes)
        ]
    return [task.result() for task in tasks]


def _cpu(server: PostgresProcess, nodes: list[Target]) -> float:
    return cpu_of(server.pid) + sum(node.tree.cpu() for node in nodes)


def _rerun_share(server: PostgresProcess, databases: list[str]) -> float:
    """Returns the percentage of transactions that PostgreSQL rolled back. In this measurement, only
    conflicts cause a rollback."""
    committed = rolled_back = 0
    for name in databases:
        ((commits, rollbacks),) = server.execute(f"{_TRANSACTIONS}'{name}'")
        committed, rolled_back = committed + commits, rolled_back + rollbacks
    return 100 * float(rolled_back) / float(committed + rolled_back)
