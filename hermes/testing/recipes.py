"""Reads the recipes of a guide: the packages to install, a program, and the output of the
program."""

import subprocess
from collections.abc import Mapping
from os import defpath, pathsep
from pathlib import Path

import anyio
from markdown_it import MarkdownIt

from hermes.testing.api_clients import ApiClients
from hermes.testing.gateway_process import GatewayProcess
from hermes.types.value import Value

RECIPE_SECONDS = 60
SUFFIXES = {"python": "py", "js": "mjs", "sh": "sh"}
DEFAULT_PORT = "127.0.0.1:8642"
"""The host and the port that every recipe in the guide calls. Tests replace them with the host and
the port of their gateway."""


class Recipe(Value):
    language: str
    program: str
    prints: str


def recipes(page: Path) -> Mapping[str, Recipe]:
    """Maps the name of each recipe to the recipe: a code block with a program, and the following
    text block with its expected output.

    The name is made of the headings above the program, as in "section: subsection".
    """
    found: dict[str, Recipe] = {}
    name = section = ""
    program: tuple[str, str] | None = None
    tokens = MarkdownIt().parse(page.read_text("utf-8"))
    for token, inline in zip(tokens, [*tokens[1:], None], strict=True):
        match token.type, token.tag:
            case "heading_open", "h1" | "h2" if inline is not None:
                name = section = inline.content
            case "heading_open", "h3" if inline is not None:
                name = f"{section}: {inline.content}"
            case "fence", _ if token.info in SUFFIXES:
                program = token.info, token.content
            case "fence", _ if token.info == "text" and program is not None:
                language, code = program
                assert name not in found, f"{page} has two recipes under {name!r}"
                found[name] = Recipe(language=language, program=code, prints=token.content)
                program = None
            case _:
                pass
    return found


async def run_recipe(recipe: Recipe, gateway: GatewayProcess, clients: ApiClients) -> str:
    """Runs the program of the recipe, and returns its output. The program runs in the home
    directory that the gateway uses, so that the program finds the API key."""
    path = gateway.folder / f"recipe.{SUFFIXES[recipe.language]}"
    address = f"127.0.0.1:{gateway.port}"
    path.write_text(recipe.program.replace(DEFAULT_PORT, address), "utf-8")
    match recipe.language:
        case "python":
            command = [str(clients.python), path.name]
        case "js":
            modules = gateway.folder / "node_modules"
            modules.unlink(missing_ok=True)
            modules.symlink_to(clients.node_modules)
            command = [str(clients.node), path.name]
        case _:
            command = ["bash", "-euo", "pipefail", path.name]
    environ = {
        "PATH": f"{clients.programs}{pathsep}{defpath}",
        "HOME": str(gateway.folder),
        "LANG": "C.UTF-8",
    }
    with anyio.fail_after(RECIPE_SECONDS):
        done = await anyio.run_process(
            command, cwd=gateway.folder, env=environ, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    return done.stdout.decode()
