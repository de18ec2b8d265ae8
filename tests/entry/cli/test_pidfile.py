"""Which gateway runs for a home."""

from pathlib import Path

from hermes.entry.cli.pidfile import PidFile, Running


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
