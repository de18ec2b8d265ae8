"""Evaluates the code that shells and other interpreters get from an option, a file or a pipe.

Nothing is executed. The functions return what a program would print, as far as it is known.
"""

import re
from collections.abc import Callable
from itertools import dropwhile

from hermes.core.danger.file_access import judge_write
from hermes.core.danger.holes import ANYTHING, DOWNLOAD, derived, is_known, is_only_unknown
from hermes.core.danger.invocation import Invocation
from hermes.core.danger.options import ParsedOptions, names
from hermes.core.danger.outputs import text_of
from hermes.core.danger.python_code import judge_python
from hermes.core.danger.script_code import judge_code
from hermes.types.danger import ScriptLanguage

SHELLS = names("sh bash dash zsh ksh ksh93 mksh ash rbash yash fish csh tcsh oksh posh")
_STDIN = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")

CODE_OPTIONS = {
    "perl": "e E",
    "ruby": "e",
    "node": "e p eval print",
    "nodejs": "e p eval print",
    "bun": "e eval p print",
    "deno": "",
    "php": "r",
    "lua": "e",
    "luajit": "e",
    "osascript": "e",
    "julia": "e E eval",
    "Rscript": "e",
    "R": "e",
    "groovy": "e",
    "scala": "e",
    "elixir": "e eval",
    "erl": "eval",
    "guile": "c",
    "racket": "e",
    "tclsh": "",
    "octave": "eval",
    "emacs": "eval",
    "pwsh": "c Command command",
    "powershell": "c Command command",
    "ghc": "e",
    "swift": "e",
    "raku": "e",
    "crystal": "",
    "jshell": "",
}
"""Interpreters, each with the options whose value is code."""
_VALUED = {
    "perl": "I M m",
    "ruby": "r I C E",
    "node": "r require import input-type C conditions",
    "php": "d c f z S t",
    "lua": "l",
    "osascript": "l",
    "emacs": "l load f u",
}


def run_shell(call: Invocation) -> str:
    """Evaluates the code that a shell gets from `-c`, a file or its input. Returns what
    the code would print."""
    # Arguments such as `+x` are options, too: they switch an option off. They may come before `-c`.
    call.arguments = [*dropwhile(lambda one: one[:1] == "+", call.arguments)]
    parsed = call.options(("o", "O", "rcfile", "init-file"), permute=False)
    operands = [*dropwhile(lambda one: one[:1] == "+", parsed.operands)]
    for file in parsed.values("rcfile", "init-file"):
        _run_content(call, _file_code(call, file, "shell") or "")
    if parsed.has("c", "command"):
        text = [*parsed.values("command"), *operands]
        return _run_command_string(call, text)
    if parsed.has("n") and not parsed.dynamic:
        return ANYTHING
    if operands and not parsed.has("s") and call.path(operands[0]) not in _STDIN:
        return _run_file(call, operands)
    if call.stdin is None:
        return ANYTHING
    return _run_content(call, call.stdin, operands[1:])


def _run_command_string(call: Invocation, operands: list[str]) -> str:
    if not operands:
        return ANYTHING
    return _run_content(call, operands[0], operands[2:], "".join(operands[1:2]))


def _run_content(
    call: Invocation, text: str, arguments: list[str] | None = None, name: str = ""
) -> str:
    """Evaluates text as code of a new shell, and returns what the shell would print. Text that is
    downloaded or entirely unknown needs approval."""
    if DOWNLOAD in text:
        call.danger("runs a script that comes from the network", effect="machine")
        return DOWNLOAD
    if is_only_unknown(text):
        call.danger("runs commands that are known only when the command runs", effect="unclear")
        call.add_read_scripts()
        return derived(text)
    scope = call.scope.inner()
    scope.arguments = tuple(arguments or ())
    if name:
        scope.variables["0"] = (name,)
    return call.shell.run_text(text, scope, None if text == call.stdin else call.stdin)


def _run_file(call: Invocation, operands: list[str]) -> str:
    content = _file_code(call, operands[0], "shell")
    return ANYTHING if content is None else _run_content(call, content, operands[1:])


def _file_code(call: Invocation, file: str, language: ScriptLanguage = "other") -> str | None:
    """Returns the content of a code file that the program runs. The content is known only if the
    command itself has written the file. Otherwise, returns None."""
    content = call.scope.content(file)
    if content is None or not is_known(content):
        call.add_script(file, language)
    return content


def run_written_file(call: Invocation, content: str) -> str:
    """Evaluates a program file that an earlier part of the command has written or downloaded.
    Returns what the program would print."""
    if DOWNLOAD in content:
        call.danger(f"runs {call.program}, which comes from the network", effect="machine")
        return DOWNLOAD
    shebang = re.match(r"#!\s*(?:\S*/)?(?:env\s+(?:-S\s+)?)?(\S+)", content)
    interpreter = shebang[1].rpartition("/")[2] if shebang else "sh"
    if interpreter in SHELLS:
        return _run_content(call, content, call.arguments)
    return call.run([interpreter, "-"], content)


def run_python(call: Invocation) -> str:
    """Judges the code that a Python interpreter gets from an option, a file or its input. Returns
    what the interpreter would print."""
    parsed = call.options(names("c m W X Q check-hash-based-pycs"), permute=False)
    if codes := parsed.values("c"):
        return _python(call, codes[0])
    if modules := parsed.values("m"):
        if modules[0] in ("pip", "pytest", "venv", "build", "black", "ruff", "mypy"):
            return call.run([modules[0], *parsed.operands])
        if modules[0] == "timeit":
            for code in parsed.operands:
                _python(call, code)
        return derived(call.stdin or "")
    return _run_source(call, parsed, _python)


def _python(call: Invocation, code: str) -> str:
    _judge_source(call, code)
    judge_python(code, call)
    return derived(call.stdin or "", code)


def _run_source(
    call: Invocation, parsed: ParsedOptions, judge: Callable[[Invocation, str], str]
) -> str:
    """Judges code that an interpreter reads from a file or from its input. Returns what the
    interpreter would print."""
    if parsed.operands and parsed.operands[0] not in _STDIN:
        language: ScriptLanguage = "python" if judge is _python else "other"
        content = _file_code(call, parsed.operands[0], language)
        if content is None:
            return derived(call.stdin or "")
    else:
        content = call.stdin or ""
    judge(call, content)
    return derived(content)


def run_interpreter(call: Invocation) -> str:
    """Judges the code of an interpreter such as Perl or Ruby. Returns what the code would print."""
    name = call.program
    options = CODE_OPTIONS[name].split()
    valued = [*options, *_VALUED.get(name, "").split()]
    single = name in ("pwsh", "powershell", "erl", "emacs")
    arguments = call.arguments
    if name in ("pwsh", "powershell"):
        _judge_powershell(call)
    if name == "deno" and arguments[:1] == ["eval"]:
        return _code(call, " ".join(arguments[1:]))
    if name in ("deno", "bun") and arguments[:1] == ["run"]:
        return derived(call.stdin or "")
    parsed = call.options(valued, permute=name == "perl", single_dash=single)
    codes = parsed.values(*options)
    for code in codes:
        _code(call, code)
    if name == "perl" and parsed.has("i"):
        for path in parsed.operands:
            judge_write(call.path(path), call.shell.findings)
    if codes or parsed.has("v", "version", "check"):
        return derived(call.stdin or "", *map(_files_text(call), parsed.operands))
    return _run_source(call, parsed, _code)


def _files_text(call: Invocation) -> Callable[[str], str]:
    return lambda operand: text_of(call, [operand])


def _judge_source(call: Invocation, code: str) -> None:
    if DOWNLOAD in code:
        call.danger("runs a program that comes from the network", effect="machine")
    elif is_only_unknown(code):
        call.danger("runs code that is known only when the command runs", effect="unclear")
        call.add_read_scripts()


def _code(call: Invocation, code: str) -> str:
    _judge_source(call, code)
    judge_code(code, call)
    return derived(call.stdin or "", code)


def _judge_powershell(call: Invocation) -> None:
    text = " ".join(call.arguments).lower()
    if re.search(r"-e(nc|ncodedcommand|c)?\s", text):
        call.danger("runs an encoded command", effect="unclear")
    if re.search(r"\b(?:rm|ri|del|erase|rd|rmdir)\s[^;|]*-(?:r|fo)", text):
        call.danger("deletes files")
    if re.search(r"\b(iex|invoke-expression|remove-item|clear-content|format-volume|stop-computer"
                 r"|restart-computer|clear-disk|set-executionpolicy)\b", text):  # fmt: skip
        call.danger("runs a destructive PowerShell command")


_AWK_PIPE = re.compile(r'(?<!\|)\|&?\s*"((?:[^"\\]|\\.)*)"')
"""A pipe from `print` to a command."""


def run_awk(call: Invocation) -> str:
    """Judges the program that `awk` runs: its first operand, or the content of the file after `-f`.
    Returns what `awk` would print."""
    parsed = call.options(names("F v f i file assign field-separator include"), permute=False)
    operands = parsed.operands
    if parsed.has("f", "file"):
        codes = [_file_code(call, file) or "" for file in parsed.values("f", "file")]
    else:
        codes, operands = operands[:1], operands[1:]
    for code in codes:
        judge_code(code, call)
        for command in _AWK_PIPE.findall(code):
            call.run_text(command)
    if "inplace" in parsed.values("i", "include"):
        for path in operands:
            judge_write(call.path(path), call.shell.findings)
    return derived(text_of(call, [one for one in operands if "=" not in one]))


_SED_EXECUTES = re.compile(
    r"(?:^|[;{}\n])\s*(?:\d+|\$|/(?:[^/\\]|\\.)*/)?(?:,(?:\d+|\$|/(?:[^/\\]|\\.)*/))?\s*!?\s*e(?:\s+(.*)|\s*$)",
)
_SED_WRITES = re.compile(r"(?:^|[;{}\n]|/[gpIim\d]*)\s*(?:\d+|\$)?\s*w\s+(\S+)")
_SED_FLAG = re.compile(
    r"s(?P<d>[^\w\s\\])(?:(?!(?P=d))[^\\]|\\.)*(?P=d)((?:(?!(?P=d))[^\\]|\\.)*)(?P=d)[gpIiMm\d]*e"
)


def run_sed(call: Invocation) -> str:
    """Judges a script of `sed`, which can write files and run commands. Returns what
    `sed` would print."""
    parsed = call.options(names("e f l expression file line-length"))
    scripts = parsed.values("e", "expression")
    operands = parsed.operands
    if not scripts and not parsed.has("f", "file"):
        scripts, operands = operands[:1], operands[1:]
    scripts += [_file_code(call, file) or "" for file in parsed.values("f", "file")]
    for script in scripts:
        for line in script.split("\n"):
            for command in _SED_EXECUTES.finditer(line[:2000]):
                if command[1]:
                    call.run_text(command[1])
                else:
                    call.danger("runs commands that `sed` reads from its input", effect="unclear")
            for replacement in _SED_FLAG.finditer(line[:2000]):
                call.danger(
                    f"runs the result of a substitution: {replacement[0]}", effect="unclear"
                )
            for path in _SED_WRITES.findall(line[:2000]):
                judge_write(call.path(path), call.shell.findings)
    if parsed.has("i", "in-place", "s"):
        for path in operands:
            judge_write(call.path(path), call.shell.findings)
    return derived(text_of(call, operands))


def run_editor(call: Invocation) -> str:
    """Judges the commands for vim and line editors, which can write files and run programs."""
    texts = [call.stdin or ""]
    parsed = call.options(("c", "S", "u", "p", "cmd"))
    texts += parsed.values("c", "cmd")
    texts += [one[1:] for one in call.arguments if one.startswith("+")]
    for text in texts:
        for line in text.split("\n"):
            if found := re.match(r"\s*:?(?:sil(?:ent)?!?\s+)?(?:[\d,.$%]*(?:r|w)?\s*)!(.+)", line):
                call.run_text(found[1])
            elif found := re.match(
                r"\s*:?(?:silent!?\s+)?(?:call\s+)?(?:system|execute|exe?|normal|lua\w*|pe(?:rl)?|ruby|py\w*)\b(.+)",
                line,
            ):
                judge_code(found[0], call)
            if found := re.match(r"\s*:?[\d,.$%]*w!?\s+(\S+)", line):
                judge_write(call.path(found[1]), call.shell.findings)
    for path in parsed.operands:
        if is_known(path) and (parsed.has("c", "s", "es", "e") or call.stdin):
            judge_write(call.path(path), call.shell.findings)
    return ANYTHING


def run_debugger(call: Invocation) -> str:
    """Evaluates the commands that a debugger gets from options or its input."""
    valued = names("ex eval-command iex o one-line x p s command source")
    parsed = call.options(valued, single_dash=True)
    commands = parsed.values("ex", "eval-command", "iex", "o", "one-line")
    for text in [*commands, *(call.stdin or "").split("\n")]:
        if found := re.match(r"\s*(?:platform\s+)?(?:shell|!|pipe)\s*(.+)", text):
            call.run_text(found[1])
        elif found := re.match(r"\s*(?:python|script|py)\s+(.+)", text):
            judge_python(found[1], call)
        elif re.match(r"\s*(?:call|print|p|expr(?:ession)?|compile)\b", text):
            judge_code(text, call)
    if "--args" in call.arguments:
        call.run(call.arguments[call.arguments.index("--args") + 1 :] or ["true"])
    return ANYTHING


def run_make(call: Invocation) -> str:
    """Evaluates the recipes of a makefile, if the command itself contains or writes the
    makefile."""
    parsed = call.options(names("C f j I directory file makefile jobs eval"))
    texts = parsed.values("eval")
    for file in parsed.values("f", "file", "makefile"):
        texts.append((call.stdin or "") if file in _STDIN else _file_code(call, file) or "")
    for setting in parsed.operands:
        if setting.startswith(("SHELL=", ".SHELLFLAGS=")):
            call.danger("makes `make` run another shell", effect="machine")
    for text in texts:
        if DOWNLOAD in text:
            call.danger("runs a makefile that comes from the network", effect="machine")
        for line in text.split("\n"):
            _judge_make_line(call, line)
    return ANYTHING


def _judge_make_line(call: Invocation, line: str) -> None:
    """Evaluates the command in a line of a makefile: a recipe, or a call of `$(shell …)`."""
    found = re.search(r"\$\(shell ([^)]*)\)", line)
    if line.startswith("\t"):
        call.run_text(line.strip().lstrip("-@+").replace("$$", "$"))
    elif ":" in line and ";" in line:
        call.run_text(line.partition(";")[2].strip().lstrip("-@+").replace("$$", "$"))
    elif found:
        call.run_text(found[1])
