"""Prints to stdout and stderr. Only this module calls click's output functions: it prints text from
the store, from models and from settings as data that can't control the terminal."""

import sys

import click

from hermes.text.console import printable, printable_json, printable_line


def say(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Prints text of any origin. `err` prints it to stderr."""
    click.echo(printable(str(text)), err=err, nl=nl)


def say_line(text: str) -> None:
    """Prints one row of a list. Line breaks inside it are shown as text."""
    click.echo(printable_line(text))


def say_heading(text: str) -> None:
    click.secho(printable(text), bold=True)


def say_json(text: str, *, nl: bool = True) -> None:
    """Prints JSON. No character of a value is lost, because unsafe characters are escaped."""
    click.echo(printable_json(text), nl=nl)


def confirm(question: str, *, default: bool = False, err: bool = False) -> bool:
    """Asks a yes-or-no question. Ctrl-C and the end of the input raise `click.Abort`."""
    return click.confirm(printable(question), default=default, err=err)


def write(text: str) -> None:
    """Writes to stdout at once. Text from other sources must have been made printable by the
    caller."""
    if text:
        sys.stdout.write(text)
        sys.stdout.flush()
