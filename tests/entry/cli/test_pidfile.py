"""Which gateway runs for a home."""

from pathlib import Path

from hermes.entry.cli.pidfile import PidFile, Running, all_running, registered


def test_the_holder_is_known_to_others_while_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "gateway.pid"
    mine, other = PidFile(path), PidFile(path)
    assert other.running() is None
    with mine.held() as ours:
        assert ours
        assert other.running() is None
        mine.write(Running(pid=7, url="http://x"))
        assert other.running() == Running(pid=7, url="http://x")
        with other.held() as theirs:
            assert not theirs
            other.write(Running(pid=8))
        assert other.running() == Running(pid=7, url="http://x")
    assert other.running() is None


def test_a_file_that_nobody_holds_means_nothing(tmp_path: Path) -> None:
    path = tmp_path / "gateway.pid"
    path.write_text('{"pid": 7}')
    assert PidFile(path).running() is None


def test_every_gateway_has_a_file_of_its_own(tmp_path: Path) -> None:
    with registered(tmp_path) as first, registered(tmp_path) as second:
        first.write(Running(pid=7, port=2))
        second.write(Running(pid=8, port=1))
        assert [one.pid for one in all_running(tmp_path)] == [8, 7]
    assert all_running(tmp_path) == []
