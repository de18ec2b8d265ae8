"""The documentation is current, complete, and leads somewhere."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from hermes import __version__
from hermes.control.commands import CommandTable, builtin_commands
from hermes.entry.cli.main import SUBCOMMANDS
from hermes.entry.http.server import ROUTES
from hermes.settings import describe

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LAYERS = (
    "entry",
    "streaming",
    "control",
    "core",
    "state",
    "boundary",
    "types",
    "text",
    "testing",
    "app",
)


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name", ["settings.md", "cli.md", "commands.md", "tools.md", "http.md", "hooks.md"]
)
def test_a_reference_page_is_what_the_code_says(name: str) -> None:
    written = (REFERENCE / name).read_text("utf-8")
    assert written == generator().pages()[name], "run `make docs`"


def test_everything_a_user_can_use_is_documented() -> None:
    text = "\n".join(path.read_text("utf-8") for path in REFERENCE.glob("*.md"))
    wanted = [f"`{field.key}`" for field in describe()]
    wanted += [f"`{name}`" for field in describe() for name in field.env]
    wanted += [f"`/{name}`" for name in CommandTable(builtin_commands()).commands]
    wanted += [f"## {tool.name}" for tool in generator().every_tool()]
    wanted += [f"## {name}" for name in generator().hook_functions()]
    wanted += [f"## hermes {name}" for name in SUBCOMMANDS]
    wanted += [f"`{method} {path}`" for method, path, _ in ROUTES]
    assert [one for one in wanted if one not in text] == []


def test_the_settings_are_described_without_python_values() -> None:
    text = (REFERENCE / "settings.md").read_text("utf-8")
    for value in ("NODEFAULT", "('", "()", "{}", "None", "Path(", "True", "False"):
        assert value not in text
    assert "| `agent.toolsets` |  | a list of words | `default` |" in text


def test_every_setting_says_what_it_decides() -> None:
    assert [field.key for field in describe() if not field.text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S)
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_every_page_can_be_found_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        links = re.findall(r"\]\(([^)#]+)", page.read_text("utf-8"))
        waiting += [(page.parent / one).resolve() for one in links if "://" not in one]
    assert [page.relative_to(ROOT).as_posix() for page in PAGES if page not in seen] == []


@pytest.mark.parametrize("layer", LAYERS)
def test_each_layer_says_what_it_is_for(layer: str) -> None:
    lines = (ROOT / "hermes" / layer / "AGENTS.md").read_text("utf-8").splitlines()
    assert len([line for line in lines if line.strip()]) <= 6


def test_the_changelog_knows_this_version() -> None:
    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")
