"""The server runs sudo for commands, and only sudo gets the password."""

from functools import partial
from pathlib import Path

import anyio

from hermes.core.tools.call import scope_of
from hermes.testing.fake_sudo import sudo_backend
from hermes.testing.running import until
from hermes.testing.sandbox_contract import RecordedCommand
from hermes.testing.turns import a_turn


async def test_sudo_runs_the_command_with_its_streams_folder_and_exit_code(tmp_path: Path) -> None:
    command = "mkdir in; cd in; echo data | sudo sh -c 'cat; pwd; echo $AS; echo bad >&2; exit 7'"
    with sudo_backend(tmp_path) as backend:
        sandbox = await backend.open(scope_of(a_turn(workspace=tmp_path / "work")))
        done = await sandbox.run(command, RecordedCommand(), seconds=30.0)
    assert (done.text, done.code) == (f"data\n{tmp_path}/work/in\nroot\nbad\n", 7)
    first, second = (line.split() for line in (tmp_path / "calls").read_text().splitlines())
    assert first[1:] == ["-S", "-v", "-p"]
    assert second[1] == "-n"
    # Without a terminal, the real sudo remembers the password only for the process that has given
    # it. So the same process must start sudo both times.
    assert first[0] == second[0]


async def test_a_refused_password_runs_nothing(tmp_path: Path) -> None:
    with sudo_backend(tmp_path, "another") as backend:
        sandbox = await backend.open(scope_of(a_turn(workspace=tmp_path / "work")))
        done = await sandbox.run("sudo touch ran", RecordedCommand(), seconds=30.0)
    assert (done.text, done.code) == ("wrong\n", 1)
    assert not (tmp_path / "work" / "ran").exists()


async def test_the_command_of_sudo_is_ended_when_its_caller_ends(tmp_path: Path) -> None:
    begun, ended = (tmp_path / "work" / name for name in ("begun", "ended"))
    with sudo_backend(tmp_path) as backend:
        sandbox = await backend.open(scope_of(a_turn(workspace=tmp_path / "work")))
        waiting = "trap 'echo > ended; kill $!; exit' TERM; sleep 600 & echo > begun; wait"
        await sandbox.write("waiting", waiting.encode())
        run = partial(sandbox.run, "sudo sh waiting", RecordedCommand(), seconds=30.0)
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await until(begun.exists, 30.0)
            group.cancel_scope.cancel()
        await until(ended.exists, 30.0)
