"""`hermes store`: copies the store to another database."""

import sys

import anyio
import click
import msgspec

from hermes import settings as configuration
from hermes.entry.cli.main import Commands
from hermes.entry.cli.progress_bar import ProgressBar
from hermes.entry.cli.runtime import Runtime
from hermes.entry.output import say, say_json
from hermes.types.store_copy import CopyResult, CopyStep

LABELS = {"check": "checking the interrupted copy", "copy": "copying", "compare": "comparing"}


@click.command(cls=Commands)
def store() -> None:
    """Copy the store to another database."""


@store.command()
@click.option(
    "--to",
    required=True,
    metavar="TARGET",
    help="postgresql://…, `sqlite` for hermes.db in the home, or the path of a new SQLite file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@click.pass_obj
def copy(runtime: Runtime, to: str, as_json: bool) -> None:
    """Copy everything in the store to another, empty database.

    No gateway and no terminal may use the store while the command runs. All rows are copied and
    then compared with the original, which is not changed. If the command is interrupted, run it
    again, and it continues. At the end, the command says how to make Hermes use the copy.

    Give the password in ~/.pgpass or PGPASSWORD: other users of this machine can see TARGET.
    """
    settings = configuration.load()
    bars = Bars()
    try:
        result = anyio.run(runtime.copy_store, settings, to, bars.show)
    finally:
        bars.close()
    if as_json:
        say_json(msgspec.json.encode(result).decode())
    else:
        _say_result(result)


def _say_result(result: CopyResult) -> None:
    rows = sum(result.tables.values())
    say(f"Copied {result.source} to {result.target}.")
    say(f"{rows:,} rows in {len(result.tables)} tables were compared and are equal.")
    say(f"The original was not changed. To run on the copy, {result.advice}")


class Bars:
    """A bar for each phase of the copy, on stderr."""

    def __init__(self) -> None:
        self._phase = ""
        self._bar: ProgressBar | None = None

    def show(self, step: CopyStep) -> None:
        if self._bar is None or step.phase != self._phase:
            self.close()
            self._phase = step.phase
            self._bar = ProgressBar(sys.stderr, LABELS[step.phase], _rows)
        self._bar(step.rows, step.total)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def _rows(done: int, total: int) -> str:
    return f"{done:>{len(f'{total:,}')},} of {total:,} rows"
