"""Counts the failures of approvals: swapped answers, actions that ran without a question, decisions
by the wrong people, scripts that ran after a change, and approvals that were lost or carried out
because the gateway was killed."""

import tempfile
from pathlib import Path

from benchmarks.client import ask_once
from benchmarks.model import TOKEN, Behaviour
from benchmarks.record import Record
from benchmarks.sizes import Sizes
from benchmarks.stage import DISK, Stage
from hermes.boundary.execution.environment import child_environment
from hermes.boundary.execution.local import LocalBackend
from hermes.boundary.execution.sandbox import SANDBOX_BACKEND
from hermes.control.routing import DEFAULT_AGENT
from hermes.testing.approval_trials import count_accepted, count_swapped, count_unasked
from hermes.testing.script_races import changed_before, changed_during, exchange, overwrite
from hermes.testing.turns import a_turn
from hermes.types.approvals import GRANT_LABELS
from hermes.types.execution import BackendOptions, SandboxScope

HOME = "asking"
COMMAND = "echo x >> ran && rm -rf folder"
"""A command that needs approval, and leaves a line in the file `ran`."""
ASK_SECONDS = 60.0


async def approvals(record: Record, sizes: Sizes) -> None:
    """Approves and denies pending actions at random, in gateways of its own. Counts the actions
    that ran without an approval, or that got the decision about another action."""
    with tempfile.TemporaryDirectory(dir=DISK) as name:
        folder = Path(name)
        decided, swapped = await count_swapped(folder / "swapped", sizes.answered_rounds)
        record.put("approvals.decided", decided)
        record.put("approvals.swapped", swapped)
        unasked = [
            await count_unasked(folder / grant, grant, sizes.similar_commands)
            for grant in GRANT_LABELS
        ]
        record.put("approvals.unasked", sum(unasked))
        accepted = await count_accepted(folder / "accepted", sizes.forged_answers)
        record.put("approvals.accepted", accepted)


async def approved_scripts(record: Record, sizes: Sizes) -> None:
    """Changes scripts after their approval, before or during their start. Counts how often a
    changed script runs."""
    races = sizes.script_races // 4
    before = copied = exchanged = unprotected = 0
    with tempfile.TemporaryDirectory(dir=DISK) as name:
        folder, work = Path(name), Path(name, "work")
        work.mkdir()
        environment = child_environment({})
        scope = SandboxScope(agent=DEFAULT_AGENT, session=a_turn().session, workspace=str(work))
        options = BackendOptions(
            processes=folder / "processes",
            environment=environment,
            sandboxes=folder / "sandboxes",
        )
        bare, isolated = LocalBackend(folder / "bare", environment), SANDBOX_BACKEND.make(options)
        try:
            for change in (overwrite, exchange):
                for backend in (bare, isolated):
                    opened = await backend.open(scope)
                    before += await changed_before(opened, work, change, races)
                unprotected += await changed_during(await bare.open(scope), work, change, races)
            opened = await isolated.open(scope)
            copied = await changed_during(opened, work, overwrite, 2 * races)
            exchanged = await changed_during(opened, work, exchange, 2 * races)
        finally:
            await bare.aclose()
            await isolated.aclose()
    record.put("scripts.before", before)
    record.put("scripts.copied", copied)
    record.put("scripts.exchanged", exchanged)
    record.put("scripts.local", unprotected)


async def killed_approvals(stage: Stage, sizes: Sizes) -> None:
    """Kills a gateway with pending approvals, and answers them after the restart."""
    stage.env(HOME)
    folder = stage.folder / HOME
    (folder / "config.yaml").write_text("terminal:\n  backend: local\n")
    await stage.restart(HOME)
    await stage.behave(Behaviour(command=COMMAND))
    names = [f"pending-{number}" for number in range(sizes.pending_approvals)]
    asked = [await _said(stage, name, "clean up") for name in names]
    pending = sum("needs your approval" in text for text in asked)
    stage.ours.tree.kill()
    await stage.restart(HOME)
    ran = folder / "workspace" / "ran"
    stage.record.put("killed_approvals.pending", pending)
    stage.record.put("killed_approvals.executed", _lines(ran))
    answered = [await _said(stage, name, "/approve") for name in names]
    done = sum(stage.behaviour.tokens == text.count(TOKEN.decode()) for text in answered)
    stage.record.put("killed_approvals.lost", len(names) - min(done, _lines(ran)))
    stage.record.put("killed_approvals.twice", max(0, _lines(ran) - len(names)))


async def _said(stage: Stage, session: str, text: str) -> str:
    """Sends the text as a message in the session. Returns the answer."""
    request = stage.ours.request(session=session, text=text)
    answer = await ask_once(stage.ours.port, request, ASK_SECONDS)
    assert answer.status == 200, answer.told()
    return answer.body.decode()


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0
