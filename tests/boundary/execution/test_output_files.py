"""The output of a background command is kept in files of a bounded size, without secrets."""

import os
from pathlib import Path

from hermes.boundary.execution.output_files import OUTPUT_PIECE, OutputFiles


def test_the_end_of_long_output_is_kept(tmp_path: Path) -> None:
    log = OutputFiles(tmp_path)
    for number in range(3 * OUTPUT_PIECE // 50_000):
        log.write(b"%d\n" % number + b"x" * 50_000)
    pieces = sorted(tmp_path.iterdir())
    assert [piece.name for piece in pieces] == ["output.2", "output.3"]
    assert all(piece.stat().st_size <= OUTPUT_PIECE for piece in pieces)
    assert sum(piece.stat().st_size for piece in pieces) > OUTPUT_PIECE
    assert f"\n{number}\n".encode() in b"\n" + pieces[-1].read_bytes().replace(b"x", b"")
    os.close(log._file)
