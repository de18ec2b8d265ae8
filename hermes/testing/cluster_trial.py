"""Starts PostgreSQL, NATS and three gateways behind a proxy, so that people can try them: `make
cluster`."""

import signal
import tempfile
from pathlib import Path

import anyio
import click

from hermes.testing.cluster import cluster
from hermes.testing.gateway_process import GatewayProcess, SharedStore
from hermes.testing.model import FakeModel
from hermes.testing.nats import NatsProcess, running_nats
from hermes.testing.postgres import running_postgres
from hermes.testing.round_robin import round_robin
from hermes.testing.scripted import Plan
from hermes.testing.service import SERVICE_KEY

TRY = """
Three gateways share a database, on a server of its own. NATS on port {nats} carries their messages.
{nodes}
A proxy passes each request to the next of them. Try it, and kill a gateway meanwhile:

  curl -N http://127.0.0.1:{port}/v1/chat/completions -H 'Authorization: Bearer {key}' \\
    -H 'X-Hermes-Session-Id: trial' -H 'Content-Type: application/json' \\
    -d '{{"model": "main", "stream": true, "messages": [{{"role": "user", "content": "hi"}}]}}'

  HERMES_STORE_URL='{url}' hermes gateway status

A model for tests answers with your own words. Ctrl-C ends everything."""
PLAN = Plan(tokens=100, delay=0.1)
"""Every answer takes ten seconds, so that there is time to kill the gateway that runs the turn."""


def shown_nodes(nodes: list[GatewayProcess]) -> str:
    return "\n".join(
        f"  gateway {number}: port {node.port}, pid {node.pid}"
        for number, node in enumerate(nodes, 1)
    )


async def run_trial(folder: Path, url: str, nats: NatsProcess, port: int) -> None:
    store = SharedStore(url=url, bus_url=nats.url())
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with (
            FakeModel(PLAN) as model,
            cluster(folder, store, model.base_url, 3) as nodes,
            round_robin([node.port for node in nodes], port) as proxy,
        ):
            click.echo(
                TRY.format(
                    nodes=shown_nodes(nodes),
                    nats=nats.port,
                    port=proxy.port,
                    key=SERVICE_KEY,
                    url=url,
                )
            )
            await anext(signals)


@click.command(help=__doc__)
@click.option("--port", default=8642, help="The port of the proxy; 0 takes a free one.")
def main(port: int) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        running_postgres() as postgres,
        running_nats() as nats,
    ):
        postgres.execute("create database hermes")
        anyio.run(run_trial, Path(folder), postgres.url("hermes"), nats, port)
    click.echo("stopped")


if __name__ == "__main__":
    main()
