"""Prints to stdout and stderr. Only this module calls click's output functions. It makes sure that
text from the store, from models and from settings can't control the terminal."""

import os
import sys

import click

from hermes.text.console import printable, printable_json, printable_line
from hermes.text.wrapping import wrap_words


def terminal_columns(*, err: bool = False) -> int | None:
    """Returns the width of the terminal; None if stdout (stderr with `err`) is not a terminal."""
    try:
        return os.get_terminal_size((sys.stderr if err else sys.stdout).fileno()).columns or None
    except (OSError, ValueError):
        return None


def say(text: object = "", *, err: bool = False) -> None:
    """Prints sentences or rows. `err` prints them to stderr. In a terminal, long lines are broken
    between words."""
    click.echo(_wrapped(printable(str(text)), err=err), err=err)


def say_line(text: str) -> None:
    """Prints one row of a list. Line breaks inside it are shown as text."""
    click.echo(_wrapped(printable_line(text)))


def say_unwrapped(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Prints text whose line breaks must not change, such as a message or a value."""
    click.echo(printable(str(text)), err=err, nl=nl)


def say_heading(text: str) -> None:
    click.secho(printable(text), bold=True)


def say_json(text: str, *, nl: bool = True) -> None:
    """Prints JSON. No character of a value is lost, because unsafe characters are escaped."""
    click.echo(printable_json(text), nl=nl)


def confirm(question: str, *, default: bool = False, err: bool = False) -> bool:
    """Asks a yes-or-no question. Ctrl-C and the end of the input raise `click.Abort`."""
    return click.confirm(_wrapped(printable(question), err=err), default=default, err=err)


def _wrapped(text: str, *, err: bool = False) -> str:
    columns = terminal_columns(err=err)
    return wrap_words(text, columns) if columns else text


def write(text: str) -> None:
    """Writes to stdout at once. The caller must already have made text from other sources
    printable."""
    if text:
        sys.stdout.write(text)
        sys.stdout.flush()
