"""Finds the script files that programs get as the value of an option or after a subcommand such as
`run`."""

from hermes.core.danger.invocation import Invocation
from hermes.core.danger.options import names

_OPTIONS = {
    "php": ("f", "file"),
    "pwsh": ("f", "file", "File"),
    "powershell": ("f", "file", "File"),
    "node": ("r", "require", "import"),
    "ruby": ("r",),
    "vim": ("S", "s", "u"),
    "nvim": ("S", "s", "u"),
    "emacs": ("l", "load", "script"),
    "gdb": ("x", "ix", "command"),
    "lldb": ("s", "source"),
    "java": ("jar",),
    "psql": ("f", "file"),
    "sqlite3": ("init",),
    "expect": ("f",),
    "at": ("f",),
}
"""Programs, each with its options whose value is the path of a script."""
_RUN_VERBS = names("deno bun go uv")
"""Programs that run a script file with the verb `run`, as in `deno run FILE`."""
_SINGLE_DASH = names("java gdb lldb pwsh powershell sqlite3")
_SOURCE_ENDINGS = (".py", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".go", ".sh")


def add_script_files(call: Invocation) -> None:
    """Records the script files that a program runs because of an option, or because of the verb
    `run`, as in `deno run FILE`. The operands of shells and interpreters are recorded where these
    programs are evaluated."""
    if options := _OPTIONS.get(call.program):
        parsed = call.options(options, permute=False, single_dash=call.program in _SINGLE_DASH)
        for file in parsed.values(*options):
            if "/" in file or call.program not in ("node", "ruby"):
                call.add_script(file)
    if call.program in _RUN_VERBS and call.arguments[:1] == ["run"]:
        for operand in call.arguments[1:]:
            if operand.endswith(_SOURCE_ENDINGS) and operand[0] != "-":
                call.add_script(operand)
                return
