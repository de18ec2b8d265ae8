"""Measures what the sandbox adds to the time of a command."""

import tempfile
import time
from pathlib import Path

from benchmarks.load import median
from benchmarks.record import Record
from benchmarks.sizes import Sizes
from hermes.boundary.execution.environment import child_environment
from hermes.boundary.execution.local import LocalBackend
from hermes.boundary.execution.sandbox import SANDBOX_BACKEND
from hermes.control.routing import DEFAULT_AGENT
from hermes.testing.sandbox_contract import RecordedCommand
from hermes.testing.turns import a_turn
from hermes.types.execution import BackendOptions, Sandbox, SandboxScope


async def sandbox(record: Record, sizes: Sizes) -> None:
    """Runs `true` by turns with and without the sandbox."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = child_environment({})
        options = BackendOptions(
            processes=folder / "processes",
            environment=environment,
            sandboxes=folder / "sandboxes",
            own_workspaces=True,
        )
        scope = SandboxScope(agent=DEFAULT_AGENT, session=a_turn().session, workspace=name)
        bare, isolated = (
            LocalBackend(folder / "processes", environment),
            SANDBOX_BACKEND.make(options),
        )
        backends = (await bare.open(scope), await isolated.open(scope))
        try:
            for one in backends:
                await _seconds(one)
            pairs = [[await _seconds(one) for one in backends] for _ in range(sizes.sandboxed)]
        finally:
            await bare.aclose()
            await isolated.aclose()
    least, ours = (median([pair[at] for pair in pairs]) for at in (0, 1))
    record.put("sandbox.command", 1000 * (ours - least))


async def _seconds(sandbox: Sandbox) -> float:
    began = time.perf_counter()
    outcome = await sandbox.run("true", RecordedCommand(), seconds=60.0)
    assert outcome.code == 0, outcome.text
    return time.perf_counter() - began
