"""`hermes gateway status` lists the processes of a store that several machines share."""

import json
import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.testing.stores import store_url, stores_on_postgres
from tests.entry.cli.conftest import Run, Service


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with stores_on_postgres():
        yield store_url(tmp_path)


def test_status_lists_the_nodes_of_the_store_and_marks_this_node(
    tmp_path: Path, url: str, environ: dict[str, str], hermes: Run
) -> None:
    there = {**environ, "HERMES_STORE_URL": url, "HERMES_HOME": str(tmp_path / "there")}
    here = {**environ, "HERMES_STORE_URL": url}
    with Service(here, "--port", "0") as one, Service(there, "--port", "0") as other:
        told = json.loads(hermes("gateway", "status", "--json", HERMES_STORE_URL=url).stdout)
        nodes = {node["pid"]: node for node in told["nodes"]}
        assert nodes.keys() == {one.process.pid, other.process.pid}
        assert nodes[one.process.pid]["this"] is True
        assert nodes[other.process.pid]["this"] is False
        for node in nodes.values():
            assert (node["kind"], node["host"], node["alive"]) == (
                "gateway",
                platform.node(),
                True,
            )
            assert 0 <= node["beat_age"] < 30
        shown = hermes("gateway", "status", HERMES_STORE_URL=url)
        lines = [line for line in shown.stdout.splitlines() if "heartbeat" in line]
        assert len(lines) == 2
        assert [line.endswith("(this home)") for line in lines] == [
            str(one.process.pid) in line for line in lines
        ]


def test_without_a_database_status_says_why_the_nodes_are_not_listed(hermes: Run) -> None:
    done = hermes("gateway", "status", HERMES_STORE_URL="postgresql:///x?host=/nowhere")
    assert done.returncode == 1
    assert "No gateway runs" in done.stdout
    assert "can't be listed" in done.stderr


def test_a_store_of_one_machine_has_no_list_of_nodes(hermes: Run) -> None:
    assert json.loads(hermes("gateway", "status", "--json").stdout)["nodes"] == []
