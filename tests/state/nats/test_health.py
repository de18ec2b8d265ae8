"""The health check of the NATS servers."""

from hermes.state.nats.address import NatsAddress, nats_addresses
from hermes.state.nats.health import check_nats
from hermes.testing.nats import NatsProcess


async def test_each_server_has_a_line(server: NatsProcess) -> None:
    away = NatsAddress(host="127.0.0.1", port=9, user="u", password="secret-word")
    first, second = await check_nats([*nats_addresses(server.url()), away])
    assert (first.name, first.level, first.text.endswith(" answers")) == ("bus", "ok", True)
    assert (second.level, "127.0.0.1:9 can't be used" in second.text) == ("error", True)
    assert "bus.url" in second.hint
    assert "secret-word" not in second.text + second.hint
