"""Restricts its own process and then executes a program. Hermes runs this module when a person
opens a shell in a sandbox.

The module is run as a script, which needs only the standard library. Its arguments are the
restrictions as JSON, the folder in which the program starts, the environment as JSON, and the
program with its arguments.
"""

import json
import os
import sys

from hermes.boundary.execution.restrictions import RestrictionFields, restrict


def main() -> None:
    """Executes the program in the arguments."""
    text, folder, environment, *command = sys.argv[1:]
    restrictions: RestrictionFields = json.loads(text)
    os.chdir(folder)
    restrict(restrictions)
    os.execve(command[0], command, json.loads(environment))  # noqa: S606  # this is its purpose
