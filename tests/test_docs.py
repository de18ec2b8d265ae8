"""The documentation is current and complete, and its links work."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import click
import msgspec
import pytest
import yaml

from docs.error_codes import error_codes
from docs.generate import every_tool, hook_functions, pages
from docs.http_reference import ERRORS
from hermes import __version__
from hermes.app.builtins import Builtins
from hermes.control.commands import CommandTable
from hermes.entry.cli.main import SUBCOMMANDS, cli
from hermes.entry.http.server import ROUTES
from hermes.settings import describe
from hermes.types.events import AgentEvent

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


@cache
def generated_pages() -> dict[str, str]:
    return pages()


@pytest.mark.parametrize(
    "name",
    ["settings.md", "cli.md", "commands.md", "tools.md", "http.md", "events.md", "hooks.md"],
)
def test_every_reference_page_is_up_to_date(name: str) -> None:
    written = (REFERENCE / name).read_text("utf-8")
    assert written == generated_pages()[name], "run `make docs`"


def test_every_feature_for_users_is_documented() -> None:
    text = "\n".join(path.read_text("utf-8") for path in REFERENCE.glob("*.md"))
    wanted = [f"`{field.key}`" for field in describe()]
    wanted += [f"`{name}`" for field in describe() for name in field.env]
    wanted += [f"`/{name}`" for name in CommandTable(Builtins().register_commands()).commands]
    wanted += [f"## {tool.name}" for tool in every_tool()]
    wanted += [f"## {name}" for name in hook_functions()]
    wanted += [f"## hermes {name}" for name in SUBCOMMANDS]
    wanted += [f"`{method} {path}`" for method, path, _ in ROUTES]
    assert [one for one in wanted if one not in text] == []


def test_exactly_the_error_codes_of_the_api_are_explained() -> None:
    text = (REFERENCE / "http.md").read_text("utf-8")
    assert sorted(ERRORS) == sorted(error_codes())
    assert [code for code in error_codes() if f"`{code}`" not in text] == []


def codes_in(source: str) -> set[str]:
    """Returns the strings of the source that look like error codes: words with an underscore."""
    found = re.findall(r"(?:ApiError|bad_request|ResultsRefused)\(.*?\)", source, re.DOTALL)
    return {code for call in found for code in re.findall(r'"([a-z]+(?:_[a-z]+)+)"', call)}


def test_no_error_code_of_the_api_is_overlooked() -> None:
    """The reference page finds the codes in the syntax tree. This test finds the codes in another
    way, by a search in the source text, and compares the two results."""
    sources = [*(ROOT / "hermes" / "entry" / "http").glob("*.py")]
    sources += [ROOT / "hermes" / "control" / "client_calls.py"]
    found = {code for path in sources for code in codes_in(path.read_text("utf-8"))}
    assert len(found) > 40
    assert found - set(error_codes()) <= {"tool_call_id", "tool_choice"}


def headers_in(tree: ast.AST) -> Iterator[str]:
    """Yields the names of headers in a module: words with a dash, and the arguments of
    `header()`."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=bytes(raw)):
                text = raw.decode("latin-1")
            case ast.Constant(value=str(text)):
                pass
            case ast.Call(func=ast.Name(id="header"), args=[_, ast.Constant(value=bytes(raw))]):
                yield raw.decode("latin-1")
                continue
            case _:
                continue
        if re.fullmatch(r"[a-z]+(-[a-z]+)+", text):
            yield text


def test_every_header_of_the_api_is_documented() -> None:
    text = (REFERENCE / "http.md").read_text("utf-8").lower()
    modules = (ROOT / "hermes" / "entry" / "http").glob("*.py")
    found = {name for path in modules for name in headers_in(ast.parse(path.read_text("utf-8")))}
    values = {"no-cache", "no-store"}
    assert {"authorization", "idempotency-key", "x-hermes-ignored", "retry-after"} <= found
    assert [name for name in sorted(found - values) if f"`{name}`" not in text] == []


def test_every_event_and_field_of_json_output_is_documented() -> None:
    text = (REFERENCE / "events.md").read_text("utf-8")
    for event in get_args(AgentEvent):
        _, _, section = text.partition(f"## {event.__name__}\n")
        section = section.partition("\n## ")[0]
        names = [field.encode_name for field in msgspec.structs.fields(event)]
        assert section, event.__name__
        assert [name for name in names if f"`{name}`" not in section] == []


def test_the_settings_are_described_without_python_values() -> None:
    text = (REFERENCE / "settings.md").read_text("utf-8")
    for value in ("NODEFAULT", "('", "()", "{}", "None", "Path(", "True", "False"):
        assert value not in text
    assert "| `agent.toolsets` |  | a list of words | `default` |" in text


def test_every_setting_is_described() -> None:
    assert [field.key for field in describe() if not field.text] == []


def anchors(page: Path) -> set[str]:
    """Returns the anchors that GitHub gives to the headings of a page."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_has_a_target(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", text)
    local = [(link, anchor) for link, anchor in links if "://" not in link]
    assert [link for link, _ in local if not (page.parent / link).exists()] == []
    linked = [(page.parent / link if link else page, anchor) for link, anchor in local if anchor]
    assert [anchor for path, anchor in linked if anchor not in anchors(path)] == []


def messages_in_code() -> str:
    """Returns all strings in the code. In an f-string, `…` replaces each inserted value."""
    found = []
    for path in sorted((ROOT / "hermes").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.JoinedStr(values=parts):
                    texts = [
                        ast.literal_eval(part) if isinstance(part, ast.Constant) else "…"
                        for part in parts
                    ]
                    found.append("".join(texts))
                case ast.Constant(value=str(text)):
                    found.append(re.sub(r"%[-.\d]*[a-z]|\{\w*\}", "…", text))
    return "\n".join(found)


def test_troubleshooting_quotes_messages_of_the_code() -> None:
    page = (ROOT / "docs" / "guides" / "troubleshooting.md").read_text("utf-8")
    quoted = re.findall(r"^### (`+) ?(.+?) ?\1$", page, flags=re.MULTILINE)
    known = messages_in_code()
    assert len(quoted) > 20
    assert [message for _, message in quoted if message not in known] == []


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


def test_the_compose_file_uses_settings_and_commands_that_exist() -> None:
    compose = yaml.safe_load((ROOT / "docs" / "examples" / "compose.yaml").read_text("utf-8"))
    services = compose["services"]
    gateways = {name: one for name, one in services.items() if name.startswith("gateway")}
    assert len(gateways) == 3
    assert set(services) == {"postgres", "nats", "proxy", *gateways}
    assert set(services["proxy"]["depends_on"]) == set(gateways)
    proxied = compose["configs"]["proxy"]["content"]
    assert all(f" {name}:8642 " in proxied for name in gateways)
    config = yaml.safe_load(compose["configs"]["gateway"]["content"])
    assert config["bus"]["url"] == "nats://nats:4222"
    providers = (ROOT / "hermes" / "core" / "models" / "providers.toml").read_text("utf-8")
    settings = {name for field in describe() for name in field.env}
    for gateway in gateways.values():
        program, group, *arguments = gateway["command"]
        assert program == "hermes"
        _, command, rest = cli.resolve_command(click.Context(cli), [group, *arguments])
        assert isinstance(command, click.Group)
        _, command, options = command.resolve_command(click.Context(command), rest)
        assert command is not None
        command.make_context(group, options)
        unknown = [
            name
            for name in gateway["environment"]
            if name not in settings and f'"{name}"' not in providers
        ]
        assert unknown == []
        assert gateway["environment"]["HERMES_STORE_URL"].startswith("postgresql://hermes:")
        assert set(gateway["depends_on"]) <= set(services)
        mounted = [volume.partition(":")[2] for volume in gateway["volumes"]]
        assert mounted == [config["store"]["shared_folder"]]
        assert gateway["configs"][0]["target"] == "/home/hermes/.hermes/config.yaml"
    volumes = [volume for one in services.values() for volume in one.get("volumes", [])]
    assert {volume.partition(":")[0] for volume in volumes} == set(compose["volumes"])


@pytest.mark.parametrize("layer", LAYERS)
def test_the_agents_file_of_each_layer_says_what_the_layer_is_for(layer: str) -> None:
    lines = (ROOT / "hermes" / layer / "AGENTS.md").read_text("utf-8").splitlines()
    assert len([line for line in lines if line.strip()]) <= 6


def test_the_changelog_has_an_entry_for_this_version() -> None:
    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")
