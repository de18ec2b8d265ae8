"""The fork server and the supervisor are scripts that import only the standard library."""

import subprocess
import sys

from hermes.boundary.execution import fork_server, scripts, supervisor
from hermes.boundary.execution.scripts import script


def test_the_command_line_runs_the_main_function_of_the_module() -> None:
    # The supervisor gets no arguments here. If its main function runs, the function fails because
    # the arguments are missing.
    done = subprocess.run(script(supervisor), stderr=subprocess.PIPE, check=False)
    assert b"supervisor.py" in done.stderr
    assert b"ValueError: not enough values to unpack" in done.stderr


def test_the_supervisors_import_only_the_standard_library() -> None:
    names = f"{fork_server.__name__}, {supervisor.__name__}"
    check = f"import sys; sys.path.append(sys.argv[1]); import {names}; print(*sys.modules)"
    command = [sys.executable, "-I", "-S", "-c", check, str(scripts._ROOT)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    top = {name.partition(".")[0] for name in done.stdout.decode().split()}
    assert top - sys.stdlib_module_names - {"__main__"} == {"hermes"}
