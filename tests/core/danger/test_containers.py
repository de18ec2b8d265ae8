"""Containers that reach the host need approval."""

import pytest

from hermes.core.danger.detector import judge


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("docker run alpine ls", "run"),
        ('docker run -v "$PWD":/w x', "run"),
        ("docker run -v data:/w x", "run"),
        ("docker run -v /:/h x", "ask"),
        ("docker run -v ~/.ssh:/h x", "ask"),
        ('docker run -v "$x":/w x', "ask"),
        ("docker run --mount type=bind,source=/etc,target=/h x", "ask"),
        ("docker run --privileged x", "ask"),
        ("docker run --cap-add=ALL x", "ask"),
        ("docker run --pid=host x", "ask"),
        ("docker run --device /dev/sda x", "ask"),
        ("docker run --entrypoint rm x -r a", "ask"),
        ("docker run x rm -rf /", "ask"),
        ("docker container exec x rm -r a", "ask"),
        ("docker compose -f c.yml exec x rm -r a", "ask"),
        ("docker compose run x ls", "run"),
        ("docker compose ps", "run"),
        ("podman create -v /etc:/x y", "ask"),
    ],
)
def test_containers_that_reach_the_host_need_approval(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome
