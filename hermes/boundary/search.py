"""Searches of files that end in time, whatever the pattern."""

import contextlib
import json
import signal
import subprocess
import sys

import anyio

from hermes.boundary import scan
from hermes.boundary.scan import HIT, REMARK, WRONG, Query
from hermes.types.errors import ToolFailed
from hermes.types.value import Value


class Found(Value):
    hits: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    """Why there may be more than that."""


async def search(place: int, query: Query) -> Found:
    """What matches below the open folder, or in the open file, as far as time allows."""
    code, output = await _run(place, query)
    lines = output.decode().split("\n")[:-1]
    wrong = next((line[1:] for line in lines if line.startswith(WRONG)), None)
    if wrong is not None:
        raise ToolFailed(f"The pattern {query.pattern!r} is no regular expression: {wrong}.")
    remarks = [line[1:] for line in lines if line.startswith(REMARK)]
    if code == -signal.SIGALRM:
        remarks.append(f"stopped after {query.seconds:g} s; use a narrower path, a simpler pattern")
    elif code:
        raise ToolFailed(f"The search broke off (status {code}); use a simpler pattern.")
    hits = tuple(line[1:] for line in lines if line.startswith(HIT))
    return Found(hits=hits, remarks=tuple(remarks))


async def _run(place: int, query: Query) -> tuple[int, bytes]:
    command = [sys.executable, "-I", "-S", scan.__file__, str(place), json.dumps(query._asdict())]
    # A start that is cancelled half-way would leave a process behind.
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
