"""`hermes doctor`: shows which parts of Hermes work on this machine, and what to do about the
others."""

from collections.abc import Sequence

import anyio
import click
import msgspec

from hermes import settings as configuration
from hermes.entry.cli.runtime import Runtime
from hermes.entry.output import say, say_json, terminal_columns
from hermes.text.quantity import counted
from hermes.text.wrapping import HANGING_INDENT, hang
from hermes.types.checks import Check


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def doctor(runtime: Runtime, as_json: bool) -> None:
    """Find out what works here, and what does not.

    Each line is ok, a warning or an error, and says what to do. Nothing is changed. The model is
    not called, but its provider is asked for a list of models, and chat platforms are asked whether
    they accept the credentials.

    The exit code is 1 if a line is an error.
    """
    found = anyio.run(runtime.diagnose, configuration.locate().root, configuration.ENVIRON)
    if as_json:
        # Scripts get every field, also the fields that have their default values.
        report = {**totals(found), "checks": [msgspec.structs.asdict(one) for one in found]}
        say_json(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        for line in lines(found, terminal_columns()):
            say(line)
    if any(one.level == "error" for one in found):
        raise SystemExit(1)


def totals(checks: Sequence[Check]) -> dict[str, int]:
    """Returns the number of errors and of warnings."""
    levels = [one.level for one in checks]
    return {"errors": levels.count("error"), "warnings": levels.count("warning")}


def lines(checks: Sequence[Check], columns: int | None = None) -> list[str]:
    """Returns the checks as lines for people: level, name and text, and then the advice. `columns`
    is the width of the terminal; None for lines of any length."""
    width = max(len(one.name) for one in checks)
    shown = []
    for one in checks:
        label = f"{one.level:<7}  {one.name:<{width}}  "
        shown.append(hang(label, one.text, columns))
        if one.hint:
            narrow = columns is not None and len(label) * 3 > columns
            arrow = f"{' ' * (HANGING_INDENT if narrow else len(label))}→ "
            shown.append(hang(arrow, one.hint, columns))
    total = totals(checks)
    if not any(total.values()):
        return [*shown, "Everything works."]
    errors, warnings = counted(total["errors"], "error"), counted(total["warnings"], "warning")
    return [*shown, f"{errors}, {warnings}."]
