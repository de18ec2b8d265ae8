"""Searches files for a pattern, and stops at a time limit, even in the middle of a slow match."""

import contextlib
import json
import signal
import subprocess
import sys

import anyio
import msgspec

from hermes.boundary import scan
from hermes.boundary.scan import HIT, REMARK, WRONG, Hit, ScanTask
from hermes.types.errors import ToolFailed
from hermes.types.execution import SearchHit, SearchQuery, SearchResult

_decode_hit = msgspec.json.Decoder(Hit).decode


async def search(
    place: int, query: SearchQuery, left_out: tuple[int, int] | None = None
) -> SearchResult:
    """Searches below an open folder or in an open file. Returns the hits that are found within the
    time limit.

    `place` is the descriptor of that folder or file, whose path is `query.path`. `left_out` is the
    device and inode of a folder that is not searched.
    """
    code, output = await _run(place, search_task(query, left_out))
    return search_result(query, code, output)


def search_task(query: SearchQuery, left_out: tuple[int, int] | None = None) -> ScanTask:
    """Returns the query in the form in which the search process reads it."""
    return ScanTask(
        pattern=query.pattern,
        path=query.path,
        names=query.names,
        glob=query.glob,
        limit=query.limit,
        seconds=query.seconds,
        left_out=left_out,
    )


def search_result(query: SearchQuery, code: int, output: bytes) -> SearchResult:
    """Returns the result of a search process that has ended with this exit code and output."""
    lines = output.decode().split("\n")[:-1]
    wrong = next((line[1:] for line in lines if line.startswith(WRONG)), None)
    if wrong is not None:
        raise ToolFailed(f"The pattern {query.pattern!r} is not a regular expression: {wrong}.")
    remarks = [line[1:] for line in lines if line.startswith(REMARK)]
    if code == -signal.SIGALRM:
        remarks.append(f"stopped after {query.seconds:g} s; use a narrower path, a simpler pattern")
    elif code:
        raise ToolFailed(f"The search failed (status {code}): use a simpler pattern.")
    hits = (_decode_hit(line[1:]) for line in lines if line.startswith(HIT))
    return SearchResult(
        hits=tuple(SearchHit(path=path, line=line, text=text) for path, line, text in hits),
        remarks=tuple(remarks),
    )


async def _run(place: int, task: ScanTask) -> tuple[int, bytes]:
    command = [sys.executable, "-I", "-S", scan.__file__, str(place), json.dumps(task._asdict())]
    # If a cancellation interrupted the start, nobody would end the process.
    with anyio.CancelScope(shield=True):
        process = await anyio.open_process(
            command,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
            pass_fds=(place,),
        )
    assert process.stdout
    try:
        output = b"".join([chunk async for chunk in process.stdout])
        return await process.wait(), output
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        with anyio.CancelScope(shield=True):
            await process.aclose()
