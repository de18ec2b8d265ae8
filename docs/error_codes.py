"""Finds the error codes that the HTTP API can send, with their statuses, in the source code."""

import ast
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

from hermes.core.models.attachments import CODES
from hermes.types import errors
from hermes.types.errors import HermesError

PACKAGE = Path(errors.__file__).parents[1]
PLACES = ("entry/http", "control", "core", "streaming")
"""Folders whose errors reach a client of the API."""
HANDLED_INSIDE = frozenset(
    {"claim_lost", "format_refused", "target_gone", "tool_failed", "transaction_conflict"}
)
"""Codes of errors that the gateway handles itself. No client sees these codes."""
POSITIONS = {
    "ApiError": (0, 2),
    "ResultsRefused": (0, 1),
    "_failure": (2, 1),
    "bad_request": (None, 1),
    "Failed": (None, None),
    "TurnFinished": (None, None),
}
"""Maps each function that makes an error to the positions of two of its arguments: the status and
the code. None means that the argument has no position, because it is passed by name or not at
all."""
DEFAULTS = {
    "bad_request": (HTTPStatus.BAD_REQUEST, "invalid_request"),
    "Failed": (HTTPStatus.INTERNAL_SERVER_ERROR, "agent_error"),
    "TurnFinished": (HTTPStatus.INTERNAL_SERVER_ERROR, ""),
}
"""Maps a function to the status and the code that it uses if the call does not pass them."""

Found = Iterator[tuple[str, int]]


def error_codes() -> dict[str, list[int]]:
    """Maps every code to the statuses with which the API sends it."""
    found: dict[str, set[int]] = {}
    for code, status in (*_declared(), *_attachment_codes(), *_raised()):
        if code not in HANDLED_INSIDE:
            found.setdefault(code, set()).add(int(status))
    return {code: sorted(statuses) for code, statuses in sorted(found.items())}


def _declared() -> Found:
    """Yields the codes and statuses of the error classes in `types/errors.py`."""
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, HermesError):
            yield kind.code, kind.status


def _attachment_codes() -> Found:
    yield from ((code, errors.NotAccepted.status) for _, code in CODES.values())


def _raised() -> Found:
    """Yields the codes and statuses of the errors that the folders in `PLACES` make."""
    for place in PLACES:
        for path in sorted((PACKAGE / place).rglob("*.py")):
            tree = ast.parse(path.read_text("utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield from _in_scope(node)
            for statement in tree.body:
                if isinstance(statement, ast.Assign):
                    yield from _in_scope(statement)


def _in_scope(scope: ast.AST) -> Found:
    for call in ast.walk(scope):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        name = call.func.id
        if name not in POSITIONS:
            continue
        status_place, code_place = POSITIONS[name]
        default_status, default_code = DEFAULTS.get(name, (None, ""))
        status = _argument(call, "status", status_place)
        code = _argument(call, "code", code_place)
        match status:
            case None:
                number = default_status
            case ast.Constant(value=int(given)):
                number = HTTPStatus(given)
            case _:
                number = None
        if number is None:
            # This call copies the status of another error. That error has a call of its own, which
            # this loop also finds.
            continue
        if code is None and default_code:
            yield default_code, number
        elif code is not None:
            yield from ((text, number) for text in _texts(code, scope))


def _argument(call: ast.Call, name: str, place: int | None) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if place is not None and place < len(call.args):
        return call.args[place]
    return None


def _texts(code: ast.expr, scope: ast.AST) -> list[str]:
    """Returns the possible values of the expression. If the expression is a name, these are all
    texts that `scope` assigns to the name."""
    if isinstance(code, ast.Name):
        return [
            text
            for node in ast.walk(scope)
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == code.id
            for text in _texts(node.value, scope)
        ]
    return [
        node.value
        for node in ast.walk(code)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value
    ]
