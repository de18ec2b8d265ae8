"""Checks the servers of the bus for `hermes doctor`."""

from collections.abc import Sequence

import nats.errors

from hermes.state.nats.address import NatsAddress
from hermes.state.nats.bus import NatsConnection
from hermes.types.checks import Check


async def check_nats(addresses: Sequence[NatsAddress]) -> list[Check]:
    """Connects to each server once, and returns one check for each server."""
    return [await _check(address) for address in addresses]


async def _check(address: NatsAddress) -> Check:
    connection = NatsConnection(address)
    try:
        await connection.open()
    except (nats.errors.Error, OSError, ValueError) as error:
        reason = connection.reason or " ".join(str(error).split()) or type(error).__name__
        text = f"the NATS server at {address.place} can't be used ({reason})"
        hint = "start the server, or correct bus.url; without a bus, other gateways notice late"
        return Check(name="bus", level="error", text=text, hint=hint)
    finally:
        await connection.close()
    return Check(name="bus", level="ok", text=f"the NATS server at {address.place} answers")
