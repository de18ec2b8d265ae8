"""The conventions that a program can check. No entry may be added to an allowlist."""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "hermes"
MODULES = sorted(PACKAGE.rglob("*.py"))
SHIPPED = [path for path in MODULES if PACKAGE / "testing" not in path.parents]
TESTS = sorted((ROOT / "tests").rglob("*.py"))

LINES, FUNCTION_LINES, PARAMETERS = 400, 60, 8
GENERAL = (
    "clients/test_langchain",
    "clients/test_llm",
    "clients/test_openai",
    "clients/test_pydantic_ai",
    "clients/test_vercel_ai",
    "test_benchmarks",
    "test_conventions",
    "test_crash_postgres",
    "test_docs",
    "test_approval_story",
    "test_evening",
    "test_imports",
    "test_makefile",
    "test_node_folders",
    "test_nodes",
    "test_platform_guide",
    "test_plugin_example",
    "test_privacy",
    "test_resume",
    "test_secrets",
    "control/test_approval_kills",
    "control/test_client_call_questions",
    "control/test_client_call_repeats",
    "control/test_commands_left_running",
    "control/test_unreadable_turns",
    "entry/cli/test_disks",
    "entry/cli/test_gateway_key",
    "entry/cli/test_gateway_plugins",
    "entry/http/test_idempotency_keys",
    "entry/http/test_model_names",
    "settings/test_load",
    "state/postgres/test_faults",
    "state/sqlite/test_trouble",
)
"""Test modules that mirror no single module of the package: they test several modules together, or
one aspect of them."""
BANNED = {"manager", "helper", "helpers", "util", "utils", "handler", "base", "common", "misc"}
BULKHEADS = {
    "entry/supervisor.py",  # an adapter runs here
    "control/idle_sandboxes.py",  # an execution backend shuts sandboxes down here
    "control/outbox.py",  # an adapter sends here
    "control/preview.py",
    "control/recovery.py",  # an execution backend ends a command here
    "control/turns.py",  # a turn runs here
    "control/lanes.py",
    "control/gateway.py",  # a background job runs here
    "control/maintenance.py",
    "control/session_end.py",
    "control/titles.py",
    "core/tools/call.py",  # a tool runs here
    "entry/http/middleware.py",  # a request is answered here
    "state/sqlite/writer.py",  # the error of a transaction is passed to its caller
}
"""Modules that catch and log all errors of the code that they call."""
CHANGES_MORE = {
    "control/turn_transactions.py: TurnTransactions._prompt_of",  # this also fills a cache
}
"""Transactions that change something other than the store."""


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


tree_of = cache(parsed)


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def defects_of(path: Path) -> Iterator[str]:
    """Yields a description of each limit that the module exceeds, and of a missing docstring."""
    lines = path.read_text("utf-8").splitlines()
    if len([line for line in lines if line.strip()]) > LINES:
        yield "too many lines"
    tree = tree_of(path)
    if not ast.get_docstring(tree):
        yield "no sentence that says what the module is for"
    for function in functions(tree):
        assert function.end_lineno is not None
        if function.end_lineno - function.lineno >= FUNCTION_LINES:
            yield f"too many lines in {function.name}"
        if parameters(function) > PARAMETERS:
            yield f"too many parameters of {function.name}"


@pytest.mark.parametrize(
    ("planted", "defect"),
    [
        ('"""A module."""\n' + "A = 1\n" * LINES, "too many lines"),
        ("A = 1\n", "no sentence that says what the module is for"),
        ('"""A."""\ndef f():\n' + "    g()\n" * FUNCTION_LINES, "too many lines in f"),
        ('"""A."""\ndef f(a, b, c, d, e, f, g, h, i): ...', "too many parameters of f"),
    ],
    ids=["lines", "docstring", "function", "parameters"],
)
def test_a_planted_defect_of_a_module_is_found(tmp_path: Path, planted: str, defect: str) -> None:
    (tmp_path / "planted.py").write_text(planted)
    assert list(defects_of(tmp_path / "planted.py")) == [defect]


def test_modules_and_functions_are_short() -> None:
    found = {name_of(path): list(defects_of(path)) for path in MODULES}
    assert {name: defects for name, defects in found.items() if defects} == {}


def test_no_comment_leaves_work_for_later() -> None:
    later = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
    assert [path for path in [*MODULES, *TESTS] if later.search(path.read_text("utf-8"))] == []


def test_modules_have_specific_names() -> None:
    words = {word for path in MODULES for word in path.stem.strip("_").split("_")}
    assert not words & BANNED


def catches_everything(tree: ast.Module) -> bool:
    """Returns whether the code catches all errors and does not raise them again. Code that only
    cleans up and raises the error again is allowed."""
    return any(
        isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in ("Exception", "BaseException"))
        and not isinstance(node.body[-1], ast.Raise)
        for node in ast.walk(tree)
    )


def test_only_bulkheads_catch_all_errors() -> None:
    found = {name_of(path) for path in SHIPPED if catches_everything(tree_of(path))}
    assert found == BULKHEADS


def test_only_the_settings_read_the_environment() -> None:
    read = re.compile(r"\bos\.(environ|getenv)\b")
    found = {name_of(path) for path in MODULES if read.search(path.read_text("utf-8"))}
    # `forking.py` passes its own environment on, as the start of a new process would.
    assert found == {"settings/__init__.py", "testing/forking.py"}


def test_only_control_uses_private_parts_of_the_gateway() -> None:
    outside = [*(PACKAGE / "entry").rglob("*.py"), PACKAGE / "embedding.py"]
    private = re.compile(r"gateway\.(store|hub)\b")
    assert [name_of(path) for path in outside if private.search(path.read_text("utf-8"))] == []


PRINTS = re.compile(
    r"\b(?:click\.(?:echo|secho|confirm|prompt|echo_via_pager|progressbar)|(?<!\.)print)\("
    r"|\bsys\.(?:stdout|stderr)\.(?:buffer\.)?write\b"
)


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        ("click.echo(title)", True),
        ("click.confirm(question)", True),
        ("print(title)", True),
        ("sys.stderr.write(title)", True),
        ("say(title)", False),
        ("fingerprint(profile)", False),
    ],
)
def test_planted_output_is_found(planted: str, found: bool) -> None:
    assert bool(PRINTS.search(planted)) is found


def test_only_one_module_prints() -> None:
    """The module that prints also makes text safe for the terminal, so no command can print unsafe
    text."""
    found = {name_of(path) for path in SHIPPED if PRINTS.search(path.read_text("utf-8"))}
    answer_the_gateway = {"boundary/scan.py", "boundary/execution/remote_files.py"}
    assert found == {"entry/output.py", *answer_the_gateway}


def mirrored(path: Path) -> Path:
    """Returns the path of a module's tests."""
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
    plain = {"__init__.py", "__main__.py", "application.py", "hookspecs.py"}
    plain |= {"protocols.py", "runtime.py"}
    values = PACKAGE / "types"
    lacking = {
        name_of(path)
        for path in SHIPPED
        if path.name not in plain and values not in path.parents and not mirrored(path).exists()
    }
    assert lacking == set()


SQL = re.compile(
    r"\s*(select\s.+\sfrom\s|insert\s+(or\s+\w+\s+)?into\s|update\s+\w+\s+set\s|delete\s+from\s"
    r"|create\s+(unique\s+)?(table|index|trigger|virtual)\s|alter\s+table\s|pragma\s+\w+)",
    re.IGNORECASE | re.DOTALL,
)


def sql_in(tree: ast.Module) -> list[str]:
    """Returns the strings that are SQL statements, or the beginning of an SQL statement."""
    strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return [text for text in strings if isinstance(text, str) and SQL.match(text)]


@pytest.mark.parametrize(
    "planted",
    [
        'yield "select a from b where c = ?", (1,)',
        'yield f"delete from {table} where id = ?", (1,)',
        'yield ("update turns set state = ?" " where id = ?", (1, 2))',
        'query = """\n    INSERT INTO leases (name)\n    VALUES (?)\n"""',
        'connection.execute("pragma user_version")',
    ],
)
def test_planted_sql_is_found(planted: str) -> None:
    assert sql_in(ast.parse(f"def work():\n    {planted}\n"))


@pytest.mark.parametrize(
    "text", ["Delete a session.", "Select a model.", "update", "Update the set"]
)
def test_plain_text_is_not_mistaken_for_sql(text: str) -> None:
    assert sql_in(ast.parse(repr(text))) == []


def test_all_sql_is_in_state() -> None:
    outside = [path for path in SHIPPED if PACKAGE / "state" not in path.parents]
    assert {name_of(path): found for path in outside if (found := sql_in(tree_of(path)))} == {}


def is_platform(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "platform"
        and not (isinstance(node.value, ast.Name) and node.value.id == "sys")
    )


def names_platforms(node: ast.AST) -> bool:
    """Returns whether the node may be the name of a platform: a string, a collection of strings, or
    a constant (a name in capitals)."""
    match node:
        case ast.Constant(value=str()) | ast.MatchValue(value=ast.Constant(value=str())):
            return True
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            return any(names_platforms(element) for element in elements)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.isupper()
        case _:
            return False


def compares_platforms(tree: ast.Module) -> bool:
    """Returns whether the code compares the name of a platform with literal names."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                sides = [left, *others]
                if any(map(is_platform, sides)) and any(map(names_platforms, sides)):
                    return True
            case ast.Match(subject=subject, cases=cases):
                about = any(
                    isinstance(one, ast.expr) and is_platform(one) for one in ast.walk(subject)
                )
                patterns = [one for case in cases for one in ast.walk(case.pattern)]
                if about and any(map(names_platforms, patterns)):
                    return True
            case _:
                pass
    return False


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        ("source.platform == 'api'", True),
        ("'api' != event.source.platform", True),
        ("source.platform in {'api', 'cli'}", True),
        ("source.platform not in ('api',)", True),
        ("source.platform in AUTHENTICATED", True),
        ("source.platform in access.AUTHENTICATED", True),
        ("match source.platform, kind:\n    case 'cli', _: pass", True),
        ("source.platform == other.platform", False),
        ("sys.platform == 'linux'", False),
        ("source.platform in self.platforms", False),
        ("match source.platform:\n    case platform: pass", False),
    ],
)
def test_a_planted_comparison_of_platforms_is_found(planted: str, found: bool) -> None:
    assert compares_platforms(ast.parse(planted)) is found


def test_only_entry_points_and_the_application_know_platforms_by_name() -> None:
    def may(path: Path) -> bool:
        first = path.relative_to(PACKAGE).parts[0]
        return first in ("app", "__main__.py", "entry")

    found = {
        name_of(path) for path in SHIPPED if not may(path) and compares_platforms(tree_of(path))
    }
    assert found == set()


def public_names(tree: ast.Module) -> set[str]:
    """Returns the classes, type aliases and constants of a module, without functions and
    loggers."""
    found: set[str] = set()
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name):
                found.add(name)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if not is_type_variable(value):
                    found.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case _:
                pass
    return {name for name in found if name[0].isupper()}


def is_type_variable(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in ("TypeVar", "ParamSpec")


def shared_names(modules: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Returns each name that several modules define, with the list of these modules."""
    places: dict[str, list[str]] = {}
    for module, tree in modules.items():
        for name in public_names(tree):
            places.setdefault(name, []).append(module)
    return {name: where for name, where in places.items() if len(where) > 1}


def test_planted_duplicates_are_found() -> None:
    one = ast.parse("log = 1\nT = TypeVar('T')\nclass Found: ...\nMOST = 1\nclass _Own: ...")
    other = ast.parse("log = 2\nT = TypeVar('T')\nFound = int\nMOST: int = 2\nclass _Own: ...")
    assert shared_names({"a": one, "b": other}) == {"Found": ["a", "b"], "MOST": ["a", "b"]}


def test_a_public_name_has_one_meaning() -> None:
    platforms = PACKAGE / "entry" / "platforms"
    modules = {name_of(path): tree_of(path) for path in MODULES if platforms not in path.parents}
    shared = shared_names(modules)
    assert shared == {}


def transactions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yields each function that returns `Work` (a transaction), as a pair: its qualified name and
    the function."""
    nested = [("", node) for node in tree.body]
    for prefix, node in nested:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            nested += [(f"{prefix}{node.name}.", inner) for inner in node.body]
        if isinstance(node, ast.FunctionDef) and "Work[" in ast.unparse(node.returns or node):
            yield f"{prefix}{node.name}", node


def changes_more(function: ast.FunctionDef) -> bool:
    """Returns whether the function changes an object that it has not created."""
    own = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and is_stored(node)}
    for node in ast.walk(function):
        match node:
            case ast.Nonlocal() | ast.Global():
                return True
            case ast.Attribute(value=value) | ast.Subscript(value=value) if is_stored(node):
                if not (isinstance(value, ast.Name) and value.id in own):
                    return True
            case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in MUTATING:
                if not (
                    isinstance(value, ast.Name) and (value.id in own or value.id == "transcript")
                ):
                    return True
            case _:
                pass
    return False


MUTATING = {"add", "append", "clear", "discard", "extend", "keep", "pop", "remove", "set", "update"}


def is_stored(node: ast.Name | ast.Attribute | ast.Subscript) -> bool:
    return isinstance(node.ctx, ast.Store)


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        ("self.seen = 1", True),
        ("self._cache[1] = 2", True),
        ("seen.append(1)", True),
        ("nonlocal seen; seen = 1", True),
        ("found = []; found.append(1)", False),
        ("yield from transcript.append(1)", False),
    ],
)
def test_a_planted_side_effect_of_a_transaction_is_found(planted: str, found: bool) -> None:
    tree = ast.parse(f"class A:\n    def work(self) -> Work[None]:\n        {planted}")
    ((name, function),) = transactions(tree)
    assert (name, changes_more(function)) == ("A.work", found)


def test_a_transaction_changes_nothing_but_the_store() -> None:
    """When a transaction is retried, its function is called again, and would repeat any other
    change."""
    found = {
        f"{name_of(path)}: {name}"
        for path in SHIPPED
        for name, function in transactions(tree_of(path))
        if changes_more(function)
    }
    assert found <= CHANGES_MORE


FREE_RELATIVE = re.compile(r"(what|who|whose|whatever|whoever|where)(?![a-z'’])", re.IGNORECASE)
"""Words that begin a clause without a named subject, such as "What was said"."""


def docstrings(tree: ast.Module) -> Iterator[str]:
    """Yields the docstrings of modules, classes, functions and fields."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield text.strip()


def sentences_in(tree: ast.Module) -> Iterator[str]:
    """Yields the names of tests, without `test_`."""
    for function in functions(tree):
        if function.name.startswith("test_"):
            yield function.name.removeprefix("test_")


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        ("What was said in a session.", True),
        ("whatever_is_damaged_a_model_accepts_the_history", True),
        ("Where the files are.", True),
        ("The messages of a session.", False),
        ("Whether the disk is full.", False),
        ("whole_frames_are_sent", False),
    ],
)
def test_a_planted_free_relative_is_found(planted: str, found: bool) -> None:
    assert bool(FREE_RELATIVE.match(planted)) is found


def test_docstrings_and_test_names_begin_with_a_named_subject() -> None:
    # The syntax trees of the test modules are not cached, because no other test needs them.
    trees = chain(
        ((path, tree_of(path)) for path in MODULES), ((path, parsed(path)) for path in TESTS)
    )
    found = [
        f"{path}: {text}"
        for path, tree in trees
        for text in (*docstrings(tree), *sentences_in(tree))
        if FREE_RELATIVE.match(text)
    ]
    assert found == []


def replaced_parameters(source: str) -> list[str]:
    """Returns the parameters that an assignment expression (`:=`) replaces. In a comprehension,
    this is easily overlooked, because the names of its loops stay inside the comprehension."""
    found: list[str] = []
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            parameters = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
            named = (one.target for one in ast.walk(function) if isinstance(one, ast.NamedExpr))
            found += [one.id for one in named if one.id in parameters]
    return found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("return {path for one in files if (path := one.path)}", ["path"]),
        ("return {found for one in files if (found := one.path)}", []),
        ("return {path for path in files}", []),
    ],
)
def test_a_planted_replacement_of_a_parameter_is_found(body: str, found: list[str]) -> None:
    assert replaced_parameters(f"def f(self, path, *, files):\n    {body}\n") == found


def test_no_assignment_expression_replaces_a_parameter() -> None:
    found = {str(path): replaced_parameters(path.read_text()) for path in MODULES}
    assert {path: names for path, names in found.items() if names} == {}
