"""The import contracts pass, and each contract finds a forbidden import."""

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLANTED = {
    "Imports point down": ("streaming/fold.py", "hermes.control.keys"),
    "Entry points accept and render": ("entry/messaging.py", "hermes.state.paths"),
    "Entry points don't import": ("entry/messaging.py", "hermes.entry.http.server"),
    "The terminal imports no command": ("entry/terminal/type_ahead.py", "hermes.entry.cli.main"),
    "Only the composition root": ("control/keys.py", "hermes.state.sqlite"),
    "Execution backends are reached": ("control/keys.py", "hermes.boundary.execution.local"),
    "SDKs stay at their edge": ("control/keys.py", "sqlite3"),
    "No product code imports the test kit": ("app/gateway.py", "hermes.testing.scripted"),
}


def lint(folder: Path) -> "subprocess.CompletedProcess[str]":
    command = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [command, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False
    )


def contracts() -> configparser.ConfigParser:
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter")
    return config


@pytest.mark.parametrize("contract", PLANTED)
def test_a_planted_import_is_found(contract: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / ".importlinter", tmp_path)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "hermes", tmp_path / "hermes", ignore=ignored)
    place, imported = PLANTED[contract]
    with (tmp_path / "hermes" / place).open("a") as module:
        module.write(f"\nimport {imported}\n")
    done = lint(tmp_path)
    assert done.returncode == 1
    broken = [line for line in done.stdout.splitlines() if " BROKEN" in line]
    assert any(line.startswith(contract) for line in broken), done.stdout


def test_every_contract_has_a_planted_import() -> None:
    config = contracts()
    names = [config[one]["name"] for one in config.sections() if "contract" in one]
    assert len(names) == len(PLANTED)
    assert all(any(name.startswith(short) for short in PLANTED) for name in names)


def test_the_contracts_list_every_package() -> None:
    parts = {
        f"hermes.{path.stem}"
        for path in (ROOT / "hermes").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    parts -= {"hermes.__init__"}
    config = contracts()
    layers = set(config["importlinter:contract:layers"]["layers"].replace("|", " ").split())
    assert layers - {":"} == parts - {"hermes.testing"}
    shipped = set(config["importlinter:contract:testkit"]["source_modules"].split())
    assert shipped == parts - {"hermes.testing"}
