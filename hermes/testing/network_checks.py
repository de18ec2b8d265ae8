"""Checks which servers a command can reach, for the tests of backends that give commands a
network."""

import socket

from hermes.testing.sandbox_contract import run
from hermes.testing.sites import serving
from hermes.types.execution import NetworkPolicy, Sandbox

LISTED_HOSTS = NetworkPolicy(mode="hosts", hosts=("example.org", "*.example.net"))
OPEN_NETWORK = NetworkPolicy(mode="open")


def asking(request: str) -> str:
    """Returns a shell command that sends a request to the proxy, and prints the first line of the
    answer."""
    head = f"{request} HTTP/1.1\\r\\n\\r\\n"
    return f"exec 3<>/dev/tcp/127.0.0.1/3128; printf '{head}' >&3; head -1 <&3"


ASK_PROXY = asking("GET http://other.example/")
REFUSED_HOST = "HTTP/1.1 403 Forbidden: terminal.network does not allow other.example"
OWN_ADDRESSES = ("127.0.0.1", "127.0.0.2", "0.0.0.0")  # noqa: S104  # commands connect to them
REFUSAL_REMARK = (
    "[Connections to other.example were refused. The operator can allow these hosts with the"
    " setting terminal.network.]"
)


async def check_refused_host(sandbox: Sandbox) -> None:
    """Checks that a command with the policy `LISTED_HOSTS` can't reach an unlisted host, and that
    the command's output names the setting that allows the host."""
    outcome = await run(sandbox, f"echo $https_proxy; {ASK_PROXY}")
    first, second, *rest = outcome.text.splitlines()
    assert first == "http://127.0.0.1:3128"
    assert second.startswith(REFUSED_HOST)
    assert rest == [REFUSAL_REMARK]
    assert (outcome.code, outcome.left) == (0, 0)
    assert REFUSAL_REMARK not in (await run(sandbox, "true")).text


async def check_own_machine(sandbox: Sandbox) -> None:
    """Checks that a command with the policy `OPEN_NETWORK` can't reach a server on this machine,
    which takes the place of the gateway's API."""
    async with serving({}, host="0.0.0.0") as site:  # noqa: S104  # all addresses are tried
        places = [f"{host}:{site.port}" for host in own_names()]
        targets = [f"CONNECT {place}" for place in places]
        targets += [f"GET http://{place}/" for place in places]
        outcome = await run(sandbox, "; ".join(map(asking, targets)))
        replies = outcome.text.splitlines()
        assert len(replies) == len(targets)
        assert [reply for reply in replies if not reply.startswith("HTTP/1.1 403 ")] == []
        hosts = [host.strip("[]") for host in own_names()]
        direct = [f"(exec 3<>/dev/tcp/{host}/{site.port}) 2>&1 && echo reached" for host in hosts]
        outcome = await run(sandbox, "; ".join(direct))
        assert outcome.code != 0
        assert "reached" not in outcome.text
        assert site.accepted == 0


def own_names() -> list[str]:
    """Returns names and addresses of this machine."""
    found = {str(one[4][0]) for one in socket.getaddrinfo(socket.gethostname(), None)}
    written = {f"[{address}]" if ":" in address else address for address in found}
    return [
        *OWN_ADDRESSES,
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "2130706433",
        *sorted(written),
    ]
