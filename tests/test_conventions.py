"""The conventions that a machine can check. Allowlists only shrink."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "hermes"
MODULES = sorted(PACKAGE.rglob("*.py"))
SHIPPED = [path for path in MODULES if PACKAGE / "testing" not in path.parents]
TESTS = sorted((ROOT / "tests").rglob("*.py"))

LINES, FUNCTION_LINES, PARAMETERS = 400, 60, 8
GENERAL = (
    "test_benchmarks",
    "test_conventions",
    "test_docs",
    "test_imports",
    "test_privacy",
    "test_resume",
    "test_secrets",
    "settings/test_load",
    "state/test_sqlite_trouble",
)
"""Tests of no single module, or of one in special circumstances."""
BANNED = {"manager", "helper", "helpers", "util", "utils", "handler", "base", "common", "misc"}
BULKHEADS = {
    "entry/messaging.py",  # an adapter listens
    "control/outbox.py",  # an adapter sends
    "control/preview.py",
    "control/turns.py",  # a turn
    "control/lanes.py",
    "control/gateway.py",  # a job
    "control/upkeep.py",
    "control/endings.py",
    "control/titles.py",
    "core/tools/call.py",  # a tool
    "entry/http/door.py",  # a request
    "state/sqlite.py",  # a transaction: handed to who awaits it
}
"""Where a foreign failure is caught, logged, and kept from the rest."""
UNTESTED_ALONE = {
    "app.py",
    "control/lanes.py",
    "entry/http/auth.py",
    "entry/http/call.py",
    "entry/http/chat_request.py",
    "entry/http/connection.py",
    "entry/http/door.py",
    "entry/http/errors.py",
    "entry/http/health.py",
    "entry/http/models.py",
    "entry/http/reader.py",
    "entry/http/reply.py",
    "entry/http/sse.py",
    "state/compactions.py",
    "state/inbox.py",
    "state/schema.py",
    "state/sessions.py",
    "state/transcript.py",
    "state/turns.py",
    "streaming/wire.py",
}
"""Modules that only the tests of others exercise."""


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_can_be_held_in_mind(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    assert len([line for line in lines if line.strip()]) <= LINES
    tree = tree_of(path)
    assert ast.get_docstring(tree), "a module says in one sentence what it is for"
    for function in functions(tree):
        assert function.end_lineno is not None
        assert function.end_lineno - function.lineno < FUNCTION_LINES, function.name
        assert parameters(function) <= PARAMETERS, function.name


@pytest.mark.parametrize("path", [*MODULES, *TESTS], ids=lambda path: path.stem)
def test_nothing_is_left_for_later(path: Path) -> None:
    assert not re.search(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b", path.read_text("utf-8"))


def test_modules_are_named_for_what_they_hold() -> None:
    words = {word for path in MODULES for word in path.stem.strip("_").split("_")}
    assert not words & BANNED


def catches_everything(tree: ast.Module) -> bool:
    """Whether it stops errors that it does not know; cleaning up and raising again is no stop."""
    return any(
        isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in ("Exception", "BaseException"))
        and not isinstance(node.body[-1], ast.Raise)
        for node in ast.walk(tree)
    )


def test_only_bulkheads_catch_everything() -> None:
    found = {name_of(path) for path in SHIPPED if catches_everything(tree_of(path))}
    assert found == BULKHEADS


def test_only_the_settings_read_the_environment() -> None:
    read = re.compile(r"\bos\.(environ|getenv)\b")
    found = {name_of(path) for path in MODULES if read.search(path.read_text("utf-8"))}
    assert found == {"settings/__init__.py"}


def mirrored(path: Path) -> Path:
    """Where the tests of a module stand."""
    return ROOT / "tests" / path.relative_to(PACKAGE).with_name(f"test_{path.name}")


def test_tests_mirror_the_tree() -> None:
    expected = {mirrored(path) for path in MODULES}
    general = {ROOT / "tests" / f"{name}.py" for name in GENERAL}
    stray = [
        path.relative_to(ROOT).as_posix()
        for path in TESTS
        if path.name.startswith("test_") and path not in expected | general
    ]
    assert stray == []


def test_every_module_has_its_tests() -> None:
    plain = {"__init__.py", "__main__.py", "runtime.py"}
    values = PACKAGE / "types"
    lacking = {
        name_of(path)
        for path in SHIPPED
        if path.name not in plain and values not in path.parents and not mirrored(path).exists()
    }
    assert lacking <= UNTESTED_ALONE
