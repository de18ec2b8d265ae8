"""Judges Python code by its syntax tree."""

import ast
import base64
import binascii
import warnings
from collections.abc import Sequence

from hermes.core.danger.file_access import judge_delete, judge_move, judge_read, judge_write
from hermes.core.danger.holes import HOLES, ONE_WORD
from hermes.core.danger.invocation import Invocation
from hermes.core.danger.options import names
from hermes.types.danger import VerdictOutcome

MAX_PYTHON = 50_000
"""Length of the longest code that is judged, in characters. Longer code needs approval."""
MAX_NODES = 20_000
MAX_LOOPS = 20
_LOOPS = (ast.While, ast.For, ast.ListComp, ast.SetComp, ast.GeneratorExp)

_SHELL = names(
    """os.system os.popen commands.getoutput pty.spawn subprocess.run subprocess.call
    subprocess.check_call subprocess.check_output subprocess.Popen subprocess.getoutput
    subprocess.getstatusoutput asyncio.create_subprocess_shell asyncio.create_subprocess_exec"""
)
"""Functions whose first argument is a shell command, or a list of a program and its arguments."""
_ARGUMENTS = names(
    """os.execl os.execle os.execlp os.execlpe os.execv os.execve os.execvp os.execvpe os.spawnl
    os.spawnlp os.spawnv os.spawnvp os.posix_spawn os.posix_spawnp"""
)
"""Functions that run a program, and get the program and its arguments as separate arguments."""
_DELETING = {
    "os.remove": False,
    "os.unlink": False,
    "os.rmdir": False,
    "os.removedirs": True,
    "os.truncate": False,
    "shutil.rmtree": True,
}
"""Functions that delete the file or folder that their first argument names. The value is
True if the function deletes recursively."""
_DELETING_METHODS = frozenset({"unlink", "rmdir", "rmtree"})
_WRITING = names(
    """shutil.copy shutil.copy2 shutil.copyfile shutil.copytree shutil.move os.rename os.replace
    os.symlink os.link"""
)
"""Functions that write to the file or folder that their last argument names."""
_MOVING = names("shutil.move os.rename os.replace")
_WRITING_METHODS = frozenset({"write_text", "write_bytes"})
_PERMISSIONS = frozenset({"os.chmod", "os.chown", "os.lchown"})
_NETWORK = names(
    """urllib.request.urlopen urllib.request.urlretrieve requests.get requests.post requests.request
    httpx.get urllib2.urlopen socket.socket socket.create_connection"""
)
_ENVIRONMENT = tuple(f"os.{name}" for name in ("environ", "environ.items", "environ.copy"))
_CODE = frozenset({"exec", "eval", "compile", "execfile", "runpy.run_path", "marshal.loads"})
_REFLECTION = frozenset({"getattr", "__import__", "importlib.import_module", "globals", "vars"})
_RISKY_MODULES = frozenset({"os", "subprocess", "shutil", "pty", "ctypes", "posix", "builtins"})


def judge_python(code: str, call: Invocation) -> None:
    """Judges Python code, and evaluates the shell commands that it contains as constants. Code with
    a syntax error needs approval."""
    if not code.strip():
        return
    if len(code) > MAX_PYTHON:
        call.danger("runs a program that is too long to check", effect="unclear")
        return
    text = "".join("_" if character in HOLES else character for character in code)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
            _PythonJudge(call).judge(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        call.danger("runs Python code that can't be checked", effect="unclear")


_SHELL_METHODS = frozenset({"system", "popen", "getoutput", "check_output", "check_call", "Popen"})
_HIDING = frozenset({"globals", "locals", "vars"})
_CONNECTING = names(
    """socket ssl urllib http requests httpx aiohttp urllib3 ftplib smtplib imaplib poplib telnetlib
    xmlrpc socketserver asyncio websockets paramiko boto3 botocore pycurl grpc webbrowser"""
)
"""Modules with which code can use the network."""
_UNKNOWN = ast.Name(id="?", ctx=ast.Load())


def _functions_of(module: str) -> dict[str, str]:
    """Returns the dangerous functions that `from module import *` defines, with their full
    names."""
    full = (*_SHELL, *_ARGUMENTS, *_DELETING, *_WRITING, *_PERMISSIONS, *_NETWORK)
    return {one.rpartition(".")[2]: one for one in full if one.rpartition(".")[0] == module}


class _PythonJudge:
    """Judges the function calls in a syntax tree."""

    def __init__(self, call: Invocation) -> None:
        self._call = call
        self._names: dict[str, str] = {}
        """Full names of imported modules and functions, by the names that the code uses."""
        self._constants: dict[str, ast.expr] = {}
        self._downloads = False

    def judge(self, tree: ast.Module) -> None:
        nodes = list(ast.walk(tree))
        if len(nodes) > MAX_NODES:
            self._call.danger("runs a program that is too long to check", effect="unclear")
            return
        for node in nodes:
            self._declare(node)
        if not _CONNECTING.isdisjoint(name.partition(".")[0] for name in self._names.values()):
            self._call.shell.findings.leaves = True
        called = {self._name(node.func) for node in nodes if isinstance(node, ast.Call)}
        self._downloads = bool(called & _NETWORK)
        for node in nodes:
            if isinstance(node, ast.Call):
                self._judge_call(node)
        if "os.fork" in called:
            self._judge_loops([node for node in nodes if isinstance(node, _LOOPS)])
        if self._downloads and any(map(self._passes_environment, nodes)):
            self._call.danger("sends the environment to the network")
        starts = called & (_SHELL | _ARGUMENTS | {"os.dup2"})
        if "socket.socket" in called and starts:
            self._call.danger("connects a shell to the network")

    def _judge_loops(self, loops: Sequence[ast.AST]) -> None:
        """Judges the loops of code that calls `os.fork`."""
        for loop in loops[:MAX_LOOPS]:
            calls = [one for one in ast.walk(loop) if isinstance(one, ast.Call)]
            if any(self._name(one.func) == "os.fork" for one in calls):
                endless = isinstance(loop, ast.While)
                outcome: VerdictOutcome = "never" if endless else "ask"
                self._call.danger("is a fork bomb: the code forks in a loop", outcome)

    def _passes_environment(self, node: ast.AST) -> bool:
        """Returns whether the node is a call that gets all environment variables as an argument."""
        if not isinstance(node, ast.Call):
            return False
        given = [*node.args, *(one.value for one in node.keywords)]
        return any(
            self._name(one.func if isinstance(one, ast.Call) else one) in _ENVIRONMENT
            for one in given
        )

    def _declare(self, node: ast.AST) -> None:
        match node:
            case ast.Import(names=names):
                for one in names:
                    self._names[one.asname or one.name.partition(".")[0]] = (
                        one.name if one.asname else one.name.partition(".")[0]
                    )
            case ast.ImportFrom(module=str(module), names=names):
                for one in names:
                    self._names[one.asname or one.name] = f"{module}.{one.name}"
                    if one.name == "*":
                        self._names |= _functions_of(module)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                known = self._name(value) if isinstance(value, ast.Attribute | ast.Name) else ""
                if known:
                    self._names[name] = known
                self._assign(name, value)
            case ast.AugAssign(target=ast.Name(id=name)) | ast.arg(arg=name):
                self._assign(name, None)
            case _:
                pass

    def _assign(self, name: str, value: ast.expr | None) -> None:
        """Records a variable. A variable that is assigned twice has no known value."""
        known = value is not None and name not in self._constants
        self._constants[name] = value if known and value else _UNKNOWN

    def _name(self, node: ast.expr) -> str:
        """Returns the full name of a function or module, such as `os.path.join`; it contains `?`
        for a part that is not known."""
        match node:
            case ast.Name(id=name):
                return self._names.get(name, name)
            case ast.Attribute(value=value, attr=attribute):
                return f"{self._name(value)}.{attribute}"
            case ast.Call(func=function, args=[ast.Constant(value=str(module)), *_]):
                if self._name(function) in ("__import__", "importlib.import_module"):
                    return module
                return "?"
            case _:
                return "?"

    def _judge_call(self, node: ast.Call) -> None:
        name = self._name(node.func)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        findings = self._call.shell.findings
        if name in _SHELL or ("?" in name and method in _SHELL_METHODS):
            self._judge_command(node)
        elif name in _ARGUMENTS:
            self._judge_arguments(node)
        elif name in _DELETING:
            path = self._text(node.args[0]) if node.args else ONE_WORD
            judge_delete(self._call.path(path), findings, recursive=_DELETING[name])
        elif name in _WRITING and node.args:
            judge_write(self._call.path(self._text(node.args[-1])), findings)
            if name in _MOVING:
                judge_move(self._call.path(self._text(node.args[0])), findings)
        elif name in _PERMISSIONS and node.args:
            judge_write(self._call.path(self._text(node.args[0])), findings)
        elif name in ("open", "io.open") or method == "open":
            self._judge_open(node)
        elif method in _DELETING_METHODS:
            self._judge_method(node, delete=True)
        elif method in _WRITING_METHODS:
            self._judge_method(node, delete=False)
        else:
            self._judge_reflection(node, name)

    def _judge_reflection(self, node: ast.Call, name: str) -> None:
        match node.func:
            case ast.Subscript(value=ast.Call(func=function)) if self._name(function) in _HIDING:
                self._call.danger("calls a function whose name is hidden", effect="unclear")
            case ast.Subscript(value=ast.Attribute(attr="__dict__") | ast.Name(id="__builtins__")):
                self._call.danger("calls a function whose name is hidden", effect="unclear")
            case _:
                pass
        if name in _CODE and node.args:
            text = self._text(node.args[0])
            if ONE_WORD in text:
                source = " that comes from the network" if self._downloads else ""
                self._call.danger(
                    f"runs code{source or ' that is known only when the command runs'}"
                )
            else:
                judge_python(text, self._call)
        elif name in _REFLECTION and node.args:
            about = {self._name(one) for one in node.args} | {
                self._text(one) for one in node.args[:1]
            }
            if name == "getattr" and about & _RISKY_MODULES:
                self._call.danger("calls a system function whose name is hidden", effect="unclear")
        elif name in ("os.kill", "os.killpg") and node.args and self._text(node.args[0]) == "-1":
            self._call.danger("ends every process", "never")

    def _judge_command(self, node: ast.Call) -> None:
        given = [*node.args, *(one.value for one in node.keywords if one.arg == "args")]
        if not given:
            return
        match self._resolved(given[0]):
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                self._call.run([self._text(one) for one in elements])
            case other:
                text = self._text(other)
                if text.startswith(ONE_WORD):
                    self._call.danger(
                        "runs commands that are known only when the command runs", effect="unclear"
                    )
                else:
                    self._call.run_text(text)

    def _judge_arguments(self, node: ast.Call) -> None:
        words: list[str] = []
        for one in node.args[1:]:
            match self._resolved(one):
                case ast.List(elts=elements) | ast.Tuple(elts=elements):
                    words += [self._text(each) for each in elements]
                case other:
                    words.append(self._text(other))
        program = self._text(node.args[0]) if node.args else ONE_WORD
        self._call.run([program, *words[1:]])

    def _judge_open(self, node: ast.Call) -> None:
        path_given = self._name(node.func) in ("open", "io.open")
        modes = node.args[1:2] if path_given else node.args[:1]
        modes += [one.value for one in node.keywords if one.arg == "mode"]
        mode = self._text(modes[0]) if modes else "r"
        path = self._text(node.args[0]) if path_given and node.args else self._receiver(node)
        if any(letter in mode for letter in "wax+"):
            if not path.startswith(ONE_WORD):
                judge_write(self._call.path(path), self._call.shell.findings)
        else:
            judge_read(self._call.path(path), self._call.shell.findings)

    def _judge_method(self, node: ast.Call, *, delete: bool) -> None:
        path = self._call.path(self._receiver(node))
        if delete:
            judge_delete(path, self._call.shell.findings, recursive=False)
        elif not path.startswith(ONE_WORD):
            judge_write(path, self._call.shell.findings)

    def _receiver(self, node: ast.Call) -> str:
        """Returns the path on which a method of `pathlib.Path` is called; unknown text if the path
        is not a constant."""
        assert isinstance(node.func, ast.Attribute | ast.Name)
        if isinstance(node.func, ast.Name):
            return ONE_WORD
        match self._resolved(node.func.value):
            case ast.Call() | ast.BinOp() as path:
                return self._text(path)
            case _:
                return ONE_WORD

    def _resolved(self, node: ast.expr) -> ast.expr:
        return self._constants.get(node.id, node) if isinstance(node, ast.Name) else node

    def _text(self, node: ast.expr, depth: int = 0) -> str:
        """Returns the value of a constant expression; unknown text for other expressions."""
        if depth > 20:
            return ONE_WORD
        match self._resolved(node):
            case ast.Constant(value=value):
                return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return "-" + self._text(operand, depth + 1)
            case ast.BinOp(left=left, op=ast.Add() | ast.Div() as operator, right=right):
                between = "/" if isinstance(operator, ast.Div) else ""
                return self._text(left, depth + 1) + between + self._text(right, depth + 1)
            case ast.JoinedStr(values=values):
                return "".join(self._text(one, depth + 1) for one in values)
            case ast.Call(func=function, args=arguments):
                return self._computed(self._name(function), function, arguments, depth)
            case _:
                return ONE_WORD

    def _computed(
        self, name: str, function: ast.expr, arguments: Sequence[ast.expr], depth: int
    ) -> str:
        """Returns the result of a call that computes a string from constants; unknown text for
        other calls."""
        if name in ("base64.b64decode", "bytes.fromhex", "binascii.unhexlify") and arguments:
            text = self._text(arguments[0], depth + 1)
            try:
                data = base64.b64decode(text) if "b64" in name else bytes.fromhex(text)
                return data.decode("utf-8", "replace")
            except (ValueError, binascii.Error):
                return ONE_WORD
        if name == "os.path.expanduser" and arguments:
            return self._text(arguments[0], depth + 1)
        if name == "os.path.join":
            return "/".join(self._text(one, depth + 1) for one in arguments)
        if name.endswith(("Path", "Path.home", "str")) and arguments:
            return self._text(arguments[0], depth + 1)
        if name.endswith("Path.home"):
            return "~"
        if isinstance(function, ast.Attribute) and function.attr in (
            "decode",
            "strip",
            "expanduser",
        ):
            return self._text(function.value, depth + 1)
        return ONE_WORD
