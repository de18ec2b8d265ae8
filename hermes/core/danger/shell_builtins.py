"""Evaluates the shell builtins that change the state of the shell or run text as a command."""

import re
from collections.abc import Callable

from hermes.core.danger.assignments import judge_assignment
from hermes.core.danger.holes import (
    ANYTHING,
    DOWNLOAD,
    SECRET_TEXT,
    is_known,
    is_only_unknown,
)
from hermes.core.danger.invocation import Invocation
from hermes.core.danger.options import names
from hermes.core.danger.outputs import formatted
from hermes.core.danger.paths import classify
from hermes.core.danger.scope import HOME

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[[^\]]*\])?(\+?)=(.*)", re.DOTALL)
_SETTINGS_PROGRAMS = names(
    """ssh-agent gpg-agent brew direnv starship pyenv rbenv nodenv goenv jenv fnm mise asdf zoxide
    dircolors opam conda mamba micromamba luarocks keychain thefuck atuin mcfly kubectl helm
    minikube docker-machine npm pnpm uv rustup poetry register-python-argcomplete lesspipe
    oh-my-posh fzf sheldon golangci-lint stern kind k3d flux argocd task just"""
)
"""Programs that can print settings for a shell. People run the printed settings with `eval` or
`source`."""
_SETTINGS_WORDS = names(
    """init hook shellenv completion completions env activate shell bash zsh sh fish shell.bash
    shell.zsh posix path docker-env config generate-shell-completion - -s -c -b -k -t --eval --path
    --quiet --bin --shell --bash --zsh --agents ssh virtualenv-init --no-rehash --cmd"""
)
"""If all arguments of a program of `_SETTINGS_PROGRAMS` are in this list, its output consists only
of settings for a shell."""


def prints_settings(call: Invocation) -> bool:
    """Returns whether the program prints settings that a shell can safely run, as `ssh-agent`
    does."""
    return call.program in _SETTINGS_PROGRAMS and all(
        argument in _SETTINGS_WORDS for argument in call.arguments
    )


def evaluate_eval(call: Invocation) -> str:
    """Evaluates `eval`, which runs its arguments in the current shell."""
    words = call.arguments[1:] if call.arguments[:1] == ["--"] else call.arguments
    return run_known(call, " ".join(words))


def run_known(call: Invocation, text: str) -> str:
    """Evaluates text in the current shell. Text that is entirely unknown needs approval."""
    if is_only_unknown(text) and DOWNLOAD not in text:
        call.danger("runs commands that are known only when the command runs", effect="unclear")
        call.add_read_scripts()
        return ANYTHING
    return call.shell.run_text(text, call.scope, call.stdin)


def evaluate_source(call: Invocation) -> str:
    """Evaluates `source`, which runs a file in the current shell."""
    if not call.arguments:
        return ""
    file = call.arguments[0]
    if call.path(file) in ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        return run_known(call, call.stdin or "")
    content = call.scope.content(file)
    if content is None or not is_known(content):
        call.add_script(file, "shell")
    if content is not None:
        return run_known(call, content)
    if classify(call.path(file)) == "temporary":
        call.danger(f"runs the temporary file {file} in the current shell", effect="machine")
    return ANYTHING


def evaluate_cd(call: Invocation) -> str:
    """Evaluates `cd` and `pushd`."""
    operands = [
        one for one in call.arguments if one == "-" or not re.fullmatch(r"-[LPe@n]+|--", one)
    ]
    target = operands[0] if operands else HOME
    scope = call.scope
    if target == "-":
        target = scope.value("OLDPWD")
    scope.variables["OLDPWD"] = (scope.folder or ".",)
    if call.program == "pushd":
        scope.pushed = (*scope.pushed, (scope.folder, scope.folders))
    scope.enter_folder(target)
    return ""


def evaluate_popd(call: Invocation) -> str:
    """Evaluates `popd`, which returns to the working directory before `pushd`."""
    *rest, (call.scope.folder, call.scope.folders) = call.scope.pushed or (("", None),)
    call.scope.pushed = tuple(rest)
    return ""


def evaluate_declaration(call: Invocation) -> str:
    """Evaluates those arguments of `export` and similar builtins that the parser has not recognised
    as assignments, such as `"$name=1"`."""
    if call.arguments == ["-p"]:
        return SECRET_TEXT
    for argument in call.arguments:
        if found := _ASSIGNMENT.fullmatch(argument):
            value = (call.scope.value(found[1]) if found[2] else "") + found[3]
            call.scope.assign(found[1], value)
            judge_assignment(found[1], (value,), call.scope, call.shell)
    return ""


def evaluate_set(call: Invocation) -> str:
    """Evaluates `set`, which sets the positional parameters or prints all variables."""
    if not call.arguments:
        return SECRET_TEXT
    if call.arguments[:2] == ["+o", "history"]:
        call.danger("switches the history of the shell off", effect="machine")
    elif "--" in call.arguments:
        call.scope.arguments = tuple(call.arguments[call.arguments.index("--") + 1 :])
    elif call.arguments and not call.arguments[0].startswith(("-", "+")):
        call.scope.arguments = tuple(call.arguments)
    return ""


def evaluate_shift(call: Invocation) -> str:
    """Evaluates `shift`, which removes positional parameters."""
    count = "".join(call.arguments[:1]) or "1"
    if call.scope.arguments is not None:
        known = count.isdigit() and len(count) < 4
        call.scope.arguments = call.scope.arguments[int(count) :] if known else None
    return ""


def evaluate_alias(call: Invocation) -> str:
    """Evaluates `alias`. The alias is expanded where it is used."""
    for argument in call.arguments:
        name, equals, value = argument.partition("=")
        if equals:
            call.scope.aliases[name] = value
    return ""


def evaluate_unset(call: Invocation) -> str:
    """Evaluates `unset` and `unalias`."""
    for name in call.arguments:
        if name == "HISTFILE":
            call.danger("switches the history of the shell off", effect="machine")
        call.scope.variables.pop(name, None)
        call.scope.functions.pop(name, None)
        call.scope.aliases.pop(name, None)
    return ""


def evaluate_read(call: Invocation) -> str:
    """Evaluates `read` and `mapfile`, which assign text from the input."""
    parsed = call.options(names("a d i n N p t u c C O s"))
    text = call.stdin if call.stdin is not None else ANYTHING
    variables = parsed.operands or parsed.values("a") or ["REPLY"]
    plain = not call.scope.value("IFS").strip() or (len(variables) == 1 and not parsed.has("a"))
    one_line = is_known(text) and "\n" not in text.strip() and plain
    if parsed.has("a") and one_line:
        call.scope.variables[variables[0]] = tuple(text.split())
        return ""
    known = text.strip() if one_line and len(variables) == 1 else ""
    for name in variables:
        call.scope.variables[name] = (known or ANYTHING,)
    return ""


def evaluate_let(call: Invocation) -> str:
    """Evaluates the substitutions in the arithmetic of `let`."""
    for argument in call.arguments:
        if "$(" in argument or "`" in argument:
            call.run_text(f': "{argument}"')
    return ""


def evaluate_trap(call: Invocation) -> str:
    """Evaluates `trap`, which runs its first operand later."""
    operands = call.options(permute=False).operands
    if len(operands) > 1 and operands[0] not in ("-", ""):
        call.run_text(operands[0])
    return ""


def evaluate_printf(call: Invocation) -> str:
    """Evaluates `printf`, which can assign its output to a variable."""
    if call.arguments[:1] == ["-v"] and len(call.arguments) > 2:
        # If a format begins with a dash, printf reads it as an invalid option and assigns nothing.
        # So the value of the variable is unknown.
        invalid = call.arguments[2][:1] == "-" and call.arguments[2] != "--"
        text = ANYTHING if invalid else formatted(call.arguments[2:])
        call.scope.assign(call.arguments[1], text)
        return ""
    return formatted(call.arguments)


def evaluate_exec(call: Invocation) -> str | None:
    """Evaluates `exec` without a program, which only redirects. Returns None if `exec` has a
    program."""
    return None if call.options(("a",), permute=False).operands else ""


def evaluate_lookup(call: Invocation) -> str | None:
    """Evaluates `command -v`, which only looks a program up. Returns None for `command` without
    `-v`, which runs the program."""
    return ANYTHING if call.options(permute=False).has("v", "V") else None


def evaluate_history(call: Invocation) -> str:
    """Evaluates `history`, which can delete the shell's list of earlier commands."""
    if call.options(("d",)).has("c", "d", "w"):
        call.danger("deletes the history of the shell", effect="machine")
    return ANYTHING


BUILTINS: dict[str, Callable[[Invocation], str | None]] = {
    "eval": evaluate_eval,
    "source": evaluate_source,
    ".": evaluate_source,
    "cd": evaluate_cd,
    "pushd": evaluate_cd,
    "popd": evaluate_popd,
    "export": evaluate_declaration,
    "declare": evaluate_declaration,
    "typeset": evaluate_declaration,
    "local": evaluate_declaration,
    "readonly": evaluate_declaration,
    "set": evaluate_set,
    "shift": evaluate_shift,
    "alias": evaluate_alias,
    "unset": evaluate_unset,
    "unalias": evaluate_unset,
    "read": evaluate_read,
    "mapfile": evaluate_read,
    "readarray": evaluate_read,
    "trap": evaluate_trap,
    "let": evaluate_let,
    "printf": evaluate_printf,
    "exec": evaluate_exec,
    "command": evaluate_lookup,
    "history": evaluate_history,
}
"""Builtins, each with the function that evaluates it. If the function returns None, the builtin is
evaluated like a program."""
