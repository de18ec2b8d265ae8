"""The running gateways of a home are listed."""

import subprocess
import sys
from pathlib import Path

import pytest

from hermes.state.pidfile import all_running, check_gateways, registered
from hermes.types.accounts import AccountStatus
from hermes.types.checks import CheckLevel
from hermes.types.deployment import RunningGateway

GATEWAY = """
import sys
from pathlib import Path
from hermes.state.pidfile import registered
from hermes.types.deployment import RunningGateway

with registered(Path(sys.argv[1])) as file:
    file.write(RunningGateway(pid=7))
    print("registered", flush=True)
    sys.stdin.read()
"""


def test_a_gateway_is_listed_from_its_start_to_its_end(tmp_path: Path) -> None:
    assert all_running(tmp_path) == []
    with registered(tmp_path) as file:
        assert all_running(tmp_path) == []
        file.write(RunningGateway(pid=7))
        file.write(RunningGateway(pid=7, url="http://x"))
        assert all_running(tmp_path) == [RunningGateway(pid=7, url="http://x")]
        file.write(RunningGateway(pid=7))
        assert all_running(tmp_path) == [RunningGateway(pid=7)]
    assert all_running(tmp_path) == []


def test_a_gateway_that_was_killed_is_not_listed(tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", GATEWAY, str(tmp_path)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "registered\n"
        assert [one.pid for one in all_running(tmp_path)] == [7]
        process.kill()
    assert (tmp_path / "gateway.pid").read_text() != ""
    assert all_running(tmp_path) == []
    with registered(tmp_path):
        assert all_running(tmp_path) == []


@pytest.mark.parametrize("content", ["", "{", '{"pid": "x"}', '{"pid": 7}'])
def test_a_file_without_a_lock_is_ignored(tmp_path: Path, content: str) -> None:
    (tmp_path / "gateway.pid").write_text(content)
    assert all_running(tmp_path) == []


def test_every_gateway_has_a_file_of_its_own(tmp_path: Path) -> None:
    with registered(tmp_path) as first, registered(tmp_path) as second:
        first.write(RunningGateway(pid=7, port=2))
        second.write(RunningGateway(pid=8, port=1))
        assert [one.pid for one in all_running(tmp_path)] == [8, 7]
    assert all_running(tmp_path) == []


def test_a_gateway_that_fails_removes_its_file(tmp_path: Path) -> None:
    def fail() -> None:
        with registered(tmp_path) as file:
            file.write(RunningGateway(pid=7))
            raise OSError("no")

    with pytest.raises(OSError, match="no"):
        fail()
    assert all_running(tmp_path) == []
    with registered(tmp_path):
        assert [path.name for path in tmp_path.iterdir()] == ["gateway.pid"]


@pytest.mark.parametrize(("needed", "level"), [(False, "ok"), (True, "warning")])
def test_the_check_warns_if_accounts_need_a_gateway_and_none_runs(
    tmp_path: Path, needed: bool, level: CheckLevel
) -> None:
    (found,) = check_gateways(tmp_path, needed=needed)
    assert (found.level, found.text) == (level, "no gateway runs for this home")
    assert found.hint == "`hermes gateway` starts it"


def test_the_check_shows_the_gateways_and_their_lost_accounts(tmp_path: Path) -> None:
    up = AccountStatus(account="matrix", state="connected", since=0.0)
    down = AccountStatus(account="telegram", state="off", since=0.0, reason="wrong token")
    with registered(tmp_path) as one, registered(tmp_path) as other:
        one.write(RunningGateway(pid=7, port=1, url="http://x", accounts=(up,)))
        other.write(RunningGateway(pid=8, port=2, accounts=(up, down)))
        first, second = check_gateways(tmp_path, needed=True)
    assert (first.level, first.text) == ("ok", "runs at http://x (pid 7)")
    assert second.level == "warning"
    assert second.text == "runs at port 2 (pid 8), but telegram is off (wrong token)"
    assert "hermes logs" in second.hint
