"""The script with which a person enters a sandbox."""

import json
import subprocess
from pathlib import Path

from hermes.boundary.execution import launcher
from hermes.boundary.execution.launch import Restrictions
from hermes.boundary.execution.scripts import script
from hermes.types.execution import CommandLimits


def test_the_program_is_restricted(tmp_path: Path) -> None:
    restrictions = Restrictions(limits=CommandLimits(file_bytes=1_024_000))
    shell = ["/bin/sh", "-c", "pwd; ulimit -f; echo $NAME"]
    arguments = (restrictions.text(), str(tmp_path), json.dumps({"NAME": "x"}), *shell)
    done = subprocess.run(script(launcher, *arguments), capture_output=True, check=True)
    pwd, blocks, name = done.stdout.decode().split()
    assert (pwd, name) == (str(tmp_path), "x")
    assert int(blocks) in (1000, 2000)
