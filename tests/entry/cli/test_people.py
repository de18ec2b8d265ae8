"""The command `hermes people`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hermes.app.application import Application
from hermes.entry.cli.main import cli


def hermes(home: Path, *args: str) -> Result:
    environ = {"HERMES_HOME": str(home)}
    return CliRunner(env=environ).invoke(cli, ["people", *args], obj=Application())


def test_ids_are_linked_listed_and_unlinked(tmp_path: Path) -> None:
    assert hermes(tmp_path, "list").stdout.startswith("Nobody is named")
    linked = hermes(tmp_path, "link", "telegram:7", "matrix:@ann:b.org")
    assert linked.stdout == "telegram:7, matrix:@ann:b.org are now one person, telegram:7\n"
    (tmp_path / "config.yaml").write_text("admins: ['telegram:7']\nowners: ['telegram:1']")
    assert hermes(tmp_path).stdout.splitlines() == [
        "owner  telegram:1",
        "admin  telegram:7, matrix:@ann:b.org",
    ]
    first, second = map(json.loads, hermes(tmp_path, "list", "--json").stdout.splitlines())
    assert (first["person"], first["role"]) == ("telegram:1", "owner")
    assert second["ids"] == ["telegram:7", "matrix:@ann:b.org"]
    unlinked = hermes(tmp_path, "unlink", "matrix:@ann:b.org")
    assert unlinked.stdout == "matrix:@ann:b.org is now a person of its own\n"
    again = hermes(tmp_path, "unlink", "matrix:@ann:b.org")
    assert again.exit_code == 2
    assert "is not linked to another id" in again.stderr


@pytest.mark.parametrize(
    "args", [("telegram:7",), ("telegram:7", "telegram:7"), ("telegram:7", "x")]
)
def test_wrong_ids_are_refused(tmp_path: Path, args: tuple[str, ...]) -> None:
    refused = hermes(tmp_path, "link", *args)
    assert refused.exit_code == 2
    assert "telegram:7" in refused.stderr
