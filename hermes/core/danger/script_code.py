"""Judges code in languages that Hermes can't parse. The verdict depends on the functions that the
code calls."""

import re

from hermes.core.danger.file_access import judge_delete, judge_write
from hermes.core.danger.holes import ANYTHING
from hermes.core.danger.invocation import Invocation
from hermes.core.danger.options import names
from hermes.core.danger.paths import classify

MAX_SCRIPT = 20_000
"""Length of the longest code that is judged, in characters. Longer code needs approval."""

_STRING = re.compile(
    r'"((?:[^"\\]|\\.)*)"' r"|'((?:[^'\\]|\\.)*)'" r"|`((?:[^`\\]|\\.)*)`", re.DOTALL
)
_RUNS = re.compile(
    r"\b(?:system|exec|execl|execv|execvp|execSync|execFile|execFileSync|spawn|spawnSync|popen|popen2"
    r"|popen3|shell_exec|passthru|proc_open|os\.execute|io\.popen|child_process|Open3|IO\.popen|qx"
    r"|do shell script|shell-command|call-process|Runtime|ProcessBuilder|capture2|run-shell-command"
    r"|Deno\.(?:run|Command)|Bun\.spawn|\$`|getline)\b|%x[\[({|!]|\|\s*[\"'](?:ba|da|z)?sh\b"
)
_DELETES = re.compile(
    r"\b(?:unlink(?:Sync|_tree)?|rmtree|remove_tree|rmdir(?:Sync)?|rm_rf|rm_r|rm_f|remove_dir|rmSync"
    r"|remove_entry(?:_secure)?|rimraf|os\.remove|File\.delete|Dir\.(?:rmdir|delete|unlink)|removeSync"
    r"|delete-(?:file|directory)|truncate(?:Sync)?|emptyDir(?:Sync)?|fs\.rm|promises\.rm"
    r"|Deno\.remove)\b"
)
_WRITES = re.compile(
    r"\b(?:writeFile(?:Sync)?|appendFile(?:Sync)?|createWriteStream|file_put_contents|File\.write"
    r"|File\.open|IO\.write|fopen|open|chmod(?:Sync)?|chown(?:Sync)?|rename(?:Sync)?|copyFileSync"
    r"|symlink(?:Sync)?|io\.open|write-region|print\s*>|printf?\s[^;]{0,200}>)"
)
_EVALUATES = re.compile(r"\b(?:eval|assert|Function|loadstring|load)\b")
_DECODES = re.compile(
    r"https?://|\b(?:atob|base64|base64_decode|decode|unpack|fromCharCode|LWP|fetch|curl|wget)\b"
    r"|Buffer\.from|Net::HTTP"
)
_FORK_BOMB = re.compile(
    r"\bfork\b[\s(){};]{0,10}(?:while|until|for|loop)\b|\b(?:while|until|loop|for)\b[\s(){};\w=<>|]{0,40}\bfork\b"
)
_SOCKET = re.compile(r"\b(?:socket|Socket|TCPSocket|fsockopen|net\.(?:connect|Socket)|/inet/tcp)")
_AWK_SOCKET = re.compile(r"/inet[46]?/(?:tcp|udp)/")
_SHELL = re.compile(r"/bin/(?:ba|da|z)?sh|cmd\.exe|exec|spawn|popen|system")
_RECURSIVE = re.compile(
    r"rmtree|remove_tree|rm_r|recursive|rimraf|removeSync|emptyDir|remove_dir|remove_entry"
    r"|delete-directory"
)
_CONNECTS = re.compile(
    r"(?i)\b(?:socket|https?|net|fetch|curl|ftp|axios|request|LWP|open-uri|mechanize|websocket)\b"
    r"|/inet/|XMLHttpRequest|Net::"
)
"""Matches words that occur in code that uses the network."""
_MODULES = names("child_process fs os path util utf8 utf-8 sh inherit node:child_process")
_BACKTICKS = re.compile(r"`([^`]+)`")


def judge_code(code: str, call: Invocation) -> None:
    """Judges code that an interpreter runs. If the code runs commands, the strings in the code
    are evaluated as commands."""
    if len(code) > MAX_SCRIPT:
        call.danger("runs a program that is too long to check", effect="unclear")
        return
    if _CONNECTS.search(code):
        call.shell.findings.leaves = True
    if _FORK_BOMB.search(code[:2_000]):
        call.danger("is a fork bomb: the code starts itself again without end", "never")
    if _EVALUATES.search(code) and _DECODES.search(code):
        call.danger("runs code that is decoded or downloaded", effect="machine")
    if _SOCKET.search(code) and _SHELL.search(code):
        call.danger("connects a shell to the network")
    if _AWK_SOCKET.search(code):
        call.danger("opens a network connection")
    strings = ["".join(found) for found in _STRING.findall(code)]
    _judge_files(code, strings, call)
    if _RUNS.search(code):
        _judge_commands(strings, call)
    elif call.program in ("perl", "ruby", "php", "raku", "julia"):
        for command in _BACKTICKS.findall(code):
            call.run_text(command)


def _judge_files(code: str, strings: list[str], call: Invocation) -> None:
    """Judges the files that code deletes or writes. Every string in the code may be the name of
    such a file, so all strings are judged."""
    if _DELETES.search(code):
        if not strings:
            call.danger("deletes files whose names are known only when the command runs")
        for text in strings:
            judge_delete(call.path(text), call.shell.findings, recursive=_is_recursive(code))
    if _WRITES.search(code):
        for text in strings:
            if classify(call.path(text.lstrip("> "))) in ("system", "startup", "device", "secret"):
                judge_write(call.path(text.lstrip("> ")), call.shell.findings)


def _judge_commands(strings: list[str], call: Invocation) -> None:
    """Evaluates the strings of code that runs commands: each string as a shell command, and all
    strings together as a program with its arguments."""
    commands = [text for text in strings if text not in _MODULES]
    if not commands:
        call.danger("runs commands that are known only when the command runs", effect="unclear")
    for text in commands:
        # In code such as `"rm -rf " . $x`, the string continues with unknown text. `ANYTHING`
        # stands for this text.
        joined = ANYTHING if text.endswith((" ", "/", "=")) else ""
        call.run_text(text.replace('\\"', '"').replace("\\'", "'") + joined)
    if len(commands) > 1:
        call.run(commands)


def _is_recursive(code: str) -> bool:
    return _RECURSIVE.search(code) is not None
