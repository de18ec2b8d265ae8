"""Judges git: commands that lose work, and settings that run commands."""

import re

from hermes.core.danger.file_access import judge_write
from hermes.core.danger.holes import ANYTHING
from hermes.core.danger.invocation import Invocation
from hermes.core.danger.options import ParsedOptions, names, parse_options

_GLOBAL = names("c C git-dir work-tree namespace exec-path config-env super-prefix")
_RUNS = re.compile(
    r"(core\.(sshcommand|pager|editor|fsmonitor|askpass|gitproxy)|diff\.external|sequence\.editor"
    r"|gpg\.program|gpg\..*\.program|credential\..*helper|credential\.helper|pager\..*"
    r"|filter\..*\.(clean|smudge|process)|.*tool\..*\.(cmd|path)|diff\..*\.(textconv|command)"
    r"|merge\..*\.driver|interactive\.difffilter|uploadpack\.packobjectshook|remote\..*\.(upload|receive)pack"
    r"|sendemail\.sendmailcmd|man\..*\.cmd|browser\..*\.cmd|trailer\..*\.(cmd|command))"
)
"""Settings whose value is a command."""
_HARMLESS_COMMAND = re.compile(r"core\.(editor|pager)|credential\.helper|pager\..*")
"""Settings whose value is a command. In most cases, the command is a harmless program such as an
editor."""
_PERSISTENT = re.compile(r"core\.hookspath|include(if\..*)?\.path|url\..*\.insteadof|http\.proxy"
                         r"|init\.templatedir|http\..*sslverify|protocol\.ext\.allow")  # fmt: skip


def run_git(call: Invocation) -> str:
    """Judges a git command, and the settings that it gets with `-c`. Returns what the git command
    would print."""
    outer = call.options(_GLOBAL, permute=False)
    for setting in outer.values("c"):
        name, _, value = setting.partition("=")
        _judge_setting(call, name, value)
    if not outer.operands or outer.has("help", "version"):
        return ANYTHING
    verb, *rest = outer.operands
    if alias := _alias_of(outer, verb):
        return call.run_text(alias[1:]) if alias[0] == "!" else call.run_text(f"git {alias}")
    parsed = parse_options(rest, _VALUED.get(verb, "").split())
    if parsed.has("help") or rest[:1] == ["-h"]:
        return ANYTHING
    for text in parsed.values(*names(_COMMANDS.get(verb, ""))):
        call.run_text(text)
    if judge := _VERBS.get(verb):
        judge(call, parsed)
    return ANYTHING


def _alias_of(outer: ParsedOptions, verb: str) -> str:
    for setting in outer.values("c"):
        name, _, value = setting.partition("=")
        if name.lower() == f"alias.{verb}".lower():
            return value
    return ""


def _judge_setting(call: Invocation, name: str, value: str) -> None:
    name = name.lower()
    if _RUNS.fullmatch(name) and value:
        if "helper" in name and not value.startswith(("!", "/")):
            return
        call.run_text(value.lstrip("!"))
    elif name.startswith("alias.") and value.startswith("!"):
        call.run_text(value[1:])
    elif _PERSISTENT.fullmatch(name):
        call.danger(f"changes the git setting {name}, which can run code")


def _push(call: Invocation, parsed: ParsedOptions) -> None:
    if parsed.has("n", "dry-run"):
        return
    if parsed.has("f", "force", "force-with-lease", "force-if-includes", "mirror"):
        call.danger("overwrites the history of a remote branch")
    if parsed.has("d", "delete", "prune"):
        call.danger("deletes a remote branch")
    for refspec in parsed.operands[1:]:
        if refspec.startswith("+"):
            call.danger("overwrites the history of a remote branch")
        elif refspec.startswith(":") and len(refspec) > 1:
            call.danger("deletes a remote branch")
    if parsed.dynamic:
        call.danger("pushes with options that are known only when the command runs")
    for text in parsed.values("receive-pack", "exec"):
        call.run_text(text)


def _reset(call: Invocation, parsed: ParsedOptions) -> None:
    if parsed.has("hard", "merge", "keep"):
        call.danger("throws uncommitted changes away")
    elif parsed.dynamic:
        call.danger("resets with options that are known only when the command runs")


def _clean(call: Invocation, parsed: ParsedOptions) -> None:
    if not parsed.has("n", "dry-run") and (parsed.has("f", "force") or parsed.dynamic):
        call.danger("deletes untracked files")


def _checkout(call: Invocation, parsed: ParsedOptions) -> None:
    if parsed.has("f", "force", "discard-changes"):
        call.danger("throws uncommitted changes away")
    operands = parsed.operands
    if "--" in call.arguments or any(one in (".", ":/", "*", "./") for one in operands):
        call.danger("throws uncommitted changes away")
    if parsed.has("B", "C"):
        call.danger("resets an existing branch")


def _restore(call: Invocation, parsed: ParsedOptions) -> None:
    if not parsed.has("S", "staged") or parsed.has("W", "worktree"):
        call.danger("throws uncommitted changes away")


def _switch(call: Invocation, parsed: ParsedOptions) -> None:
    if parsed.has("f", "force", "discard-changes", "C", "force-create"):
        call.danger("throws changes away")


def _branch(call: Invocation, parsed: ParsedOptions) -> None:
    if parsed.has("D", "M", "C", "f", "force"):
        call.danger("deletes or overwrites a branch")


def _tag(call: Invocation, parsed: ParsedOptions) -> None:
    if parsed.has("d", "delete", "f", "force"):
        call.danger("deletes or overwrites a tag")


def _stash(call: Invocation, parsed: ParsedOptions) -> None:
    if parsed.operands[:1] in (["drop"], ["clear"]):
        call.danger("deletes stashed changes")


def _rewrite(call: Invocation, parsed: ParsedOptions) -> None:
    call.danger("rewrites the history")
    for name, values in parsed.given.items():
        if name.endswith("filter"):
            for text in values:
                call.run_text(text)


def _rebase(call: Invocation, parsed: ParsedOptions) -> None:
    for text in parsed.values("x", "exec"):
        call.run_text(text)


def _bisect(call: Invocation, parsed: ParsedOptions) -> None:
    if "run" in call.arguments:
        call.run(call.arguments[call.arguments.index("run") + 1 :] or ["true"])


def _submodule(call: Invocation, parsed: ParsedOptions) -> None:
    if "foreach" in call.arguments:
        words = call.arguments[call.arguments.index("foreach") + 1 :]
        call.run_text(" ".join(one for one in words if one != "--recursive"))
    if parsed.operands[:1] == ["deinit"] and parsed.has("f", "force"):
        call.danger("deletes a submodule with its changes")


def _config(call: Invocation, parsed: ParsedOptions) -> None:
    operands = parsed.operands
    if operands[:1] in (["set"], ["unset"], ["get"], ["list"]):
        operands = operands[1:] if operands[0] == "set" else []
    if len(operands) < 2 or parsed.has("get", "get-all", "l", "list", "unset", "get-regexp"):
        if parsed.has("unset-all", "remove-section"):
            call.danger("deletes git settings")
        return
    name = operands[0].lower()
    _judge_setting(call, name, operands[1])
    shell = operands[1].startswith("!")
    alias = name.startswith("alias.") and shell
    harmless = _HARMLESS_COMMAND.fullmatch(name) and not shell
    if alias or (_RUNS.fullmatch(name) and not harmless):
        call.danger(f"sets {name}, so that git runs a command later")
    for file in parsed.values("f", "file"):
        judge_write(call.path(file), call.shell.findings)


def _gc(call: Invocation, parsed: ParsedOptions) -> None:
    if parsed.has("prune", "expire", "expire-unreachable") or parsed.operands[:1] == ["delete"]:
        call.danger("deletes unreachable commits")


def _update_ref(call: Invocation, parsed: ParsedOptions) -> None:
    if parsed.has("d", "stdin"):
        call.danger("deletes a reference")


def _rm(call: Invocation, parsed: ParsedOptions) -> None:
    if not parsed.has("cached", "n", "dry-run") and parsed.has("r", "f", "force"):
        call.danger("deletes tracked files")


def _worktree(call: Invocation, parsed: ParsedOptions) -> None:
    if parsed.operands[:1] == ["remove"] and parsed.has("f", "force"):
        call.danger("deletes a working tree with its changes")


def _transport(call: Invocation, parsed: ParsedOptions) -> None:
    for text in parsed.values("upload-pack", "u"):
        call.run_text(text)
    for address in parsed.operands:
        if found := re.match(r"ext::(.+)", address):
            call.run_text(found[1])
    for setting in parsed.values("c", "config"):
        name, _, value = setting.partition("=")
        _judge_setting(call, name, value)


_COMMANDS = {
    "grep": "O open-files-in-pager",
    "difftool": "x extcmd",
    "send-email": "smtp-server sendmail-cmd to-cmd cc-cmd",
    "archive": "exec",
    "daemon": "access-hook",
}
"""Options of git commands whose value is a command."""
_VALUED = {
    "grep": "O open-files-in-pager e f A B C m",
    "difftool": "x extcmd t tool",
    "push": "o push-option receive-pack exec repo",
    "filter-branch": "env-filter tree-filter index-filter parent-filter msg-filter commit-filter "
    "tag-name-filter subdirectory-filter setup d original",
    "rebase": "x exec onto s X C",
    "clean": "e exclude",
    "restore": "s source",
    "config": "f file blob type default",
    "clone": "u upload-pack b branch c config o origin depth reference template j",
    "fetch": "upload-pack depth o j",
    "ls-remote": "upload-pack o",
    "tag": "m F u n message file sort",
    "branch": "u set-upstream-to sort contains",
    "checkout": "b B orphan conflict",
    "switch": "c C",
    "reflog": "",
}
_VERBS = {
    "push": _push,
    "reset": _reset,
    "clean": _clean,
    "checkout": _checkout,
    "restore": _restore,
    "switch": _switch,
    "branch": _branch,
    "tag": _tag,
    "stash": _stash,
    "filter-branch": _rewrite,
    "filter-repo": _rewrite,
    "rebase": _rebase,
    "bisect": _bisect,
    "submodule": _submodule,
    "config": _config,
    "gc": _gc,
    "prune": _rewrite,
    "replace": _rewrite,
    "reflog": _gc,
    "update-ref": _update_ref,
    "rm": _rm,
    "worktree": _worktree,
    "clone": _transport,
    "fetch": _transport,
    "pull": _transport,
    "ls-remote": _transport,
}
