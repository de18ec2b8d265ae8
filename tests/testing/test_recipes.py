"""The recipes of the guide are found, a test runs each of them, and the guide installs the same
packages as the tests."""

import re
from pathlib import Path

from hermes.testing.api_clients import NODE_CLIENTS, PYTHON_CLIENTS
from hermes.testing.recipes import Recipe, recipes
from hermes.testing.shop import GUIDE

TESTS = Path(__file__).parents[1] / "clients"


def test_a_recipe_is_a_program_and_its_output(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# T\n```text\nno program\n```\n## A\n### B\n```console\n$ pip install a\n```\n"
        "```python\nprint(1)\n```\nIt prints:\n```text\n1\n```\n## C\n```sh\nnothing is said\n```\n"
    )
    found = Recipe(language="python", program="print(1)\n", prints="1\n")
    assert recipes(page) == {"A: B": found}
    page.write_text("# T\n```python\nprint(1)\n```\n```text\n1\n```\n")
    assert recipes(page) == {"T": found}


def test_every_recipe_of_the_guide_is_run_by_a_test() -> None:
    tests = "".join(path.read_text("utf-8") for path in TESTS.glob("test_*.py"))
    found = recipes(GUIDE)
    assert len(found) >= 13
    assert [name for name in found if f'"{name}"' not in tests] == []


def test_the_guide_installs_the_clients_that_tests_run() -> None:
    text = GUIDE.read_text("utf-8")
    commands = re.findall(r"^\$ (?:pip|npm) install (.+)$", text, re.M)
    named = {package.strip("'") for command in commands for package in command.split()}
    tested = {re.split(r"[<>=]", one)[0] for one in PYTHON_CLIENTS}
    tested |= {one.rpartition("@")[0] for one in NODE_CLIENTS}
    assert named == tested
