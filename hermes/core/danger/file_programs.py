"""Judges programs that change, delete, move or copy files."""

import re
from collections.abc import Callable
from itertools import pairwise, takewhile

from hermes.core.danger.file_access import judge_delete, judge_move, judge_read, judge_write
from hermes.core.danger.holes import ANYTHING, DOWNLOAD, ONE_WORD, derived, is_known, is_open
from hermes.core.danger.invocation import Invocation
from hermes.core.danger.options import ParsedOptions, names
from hermes.core.danger.outputs import is_huge, text_of
from hermes.core.danger.paths import classify, is_generated

_WHOLE = ("root", "home", "system_folder")
_NARROWS = re.compile(r"-(?:name|path|regex|iname|newer|mtime|type|size|empty)")
"""Conditions with which `find` selects only some of the files."""
_OCTAL_MODE = re.compile(r"([0-7]{0,4})([0-7])")
_SYMBOLIC_MODE = re.compile(r"([ugoa]*)[+=]([rwxXst]*)")


def judge_rm(call: Invocation) -> None:
    """Judges `rm` and `unlink`."""
    parsed = call.options(("interactive",))
    findings = call.shell.findings
    if parsed.has("help", "version"):
        return
    if parsed.dynamic or any(is_open(name) for name in parsed.given):
        call.danger("deletes files whose names are known only when the command runs")
    recursive = parsed.has("r", "R", "recursive", "d", "dir") and call.program != "unlink"
    if parsed.has("no-preserve-root"):
        call.danger("deletes the root folder", "never")
    for operand in parsed.operands:
        judge_delete(
            call.path(operand), findings, recursive=recursive and not parsed.has("d", "dir")
        )


def judge_rimraf(call: Invocation) -> None:
    """Judges `rimraf`, which deletes folders."""
    for operand in call.options().operands:
        judge_delete(call.path(operand), call.shell.findings, recursive=True)


def judge_shred(call: Invocation) -> None:
    """Judges `shred` and similar programs, whose effect can't be undone."""
    for operand in call.options(names("n s iterations size random-source")).operands:
        if classify(call.path(operand)) == "device":
            call.danger(f"overwrites the device {operand}", "never")
        else:
            call.danger(f"destroys {operand} beyond recovery")


def judge_chmod(call: Invocation) -> None:
    """Judges `chmod`."""
    mode = next((one for one in call.arguments if not re.match(r"--|-[RcfvhHLP]+$", one)), "")
    operands = [one for one in call.options(("reference",)).operands if one != mode]
    parsed = call.options(("reference",))
    recursive = parsed.has("R", "recursive")
    if is_open(mode):
        call.danger("sets permissions that are known only when the command runs", effect="unclear")
    if _is_setuid(mode):
        call.danger("lets a program run with the rights of its owner", effect="machine")
    if _is_writable_by_all(mode):
        call.danger("lets everybody write to files", effect="machine")
    for operand in operands:
        kind = classify(call.path(operand))
        if recursive and kind in (*_WHOLE, "system"):
            call.danger(f"changes the permissions of everything in {operand}", effect="machine")
        elif kind in ("system", "device", *_WHOLE):
            call.danger(f"changes the permissions of the system file {operand}", effect="machine")


def _is_setuid(mode: str) -> bool:
    octal = _OCTAL_MODE.fullmatch(mode)
    if octal:
        return len(mode.lstrip("0")) == 4 and mode.lstrip("0")[0] in "234567"
    return any("s" in change[2] for change in _SYMBOLIC_MODE.finditer(mode))


def _is_writable_by_all(mode: str) -> bool:
    octal = _OCTAL_MODE.fullmatch(mode)
    if octal:
        return octal[2] in "2367"
    changes = _SYMBOLIC_MODE.finditer(mode)
    return any("w" in one[2] and ("o" in one[1] or "a" in one[1]) for one in changes)


def judge_chown(call: Invocation) -> None:
    """Judges `chown` and `chgrp`."""
    parsed = call.options(("reference", "from"))
    owner, *rest = parsed.operands or [""]
    # An unknown owner is usually the output of `whoami`, so it counts as the user that runs the
    # agent.
    own = not is_known(owner) and not is_open(owner)
    for operand in parsed.operands if parsed.has("reference") else rest:
        kind = classify(call.path(operand))
        if parsed.has("R", "recursive") and not (own and kind in ("workspace", "temporary")):
            call.danger(f"changes the owner of everything in {operand}", effect="machine")
        elif kind not in ("workspace", "temporary", "outside", "secret") or _in_etc(call, operand):
            call.danger(f"changes the owner of {operand}", effect="machine")


def _in_etc(call: Invocation, operand: str) -> bool:
    return call.path(operand).startswith("/etc/")


def judge_dd(call: Invocation) -> None:
    """Judges `dd`."""
    findings = call.shell.findings
    values = dict(one.split("=", 1) for one in call.arguments if "=" in one)
    if (
        _dd_is_huge(values)
        and classify(call.path(values.get("of", "/dev/null"))) != "harmless_device"
    ):
        call.danger("fills the disk", effect="machine")
    for argument in call.arguments:
        name, _, value = argument.partition("=")
        if name == "of":
            judge_write(call.path(value), findings)
        elif name == "if":
            judge_read(call.path(value), findings)
        elif argument.startswith(ANYTHING):
            call.danger("copies data with options that are known only when the command runs")


def _dd_is_huge(values: dict[str, str]) -> bool:
    """Returns whether `dd` reads an endless source such as `/dev/zero`, and either copies 10 GB or
    more, or has no limit."""
    if values.get("if") not in ("/dev/zero", "/dev/urandom", "/dev/random"):
        return False
    size = re.fullmatch(r"(\d{1,9})([kKMG]?)B?", values.get("bs", "512"))
    count = values.get("count", "")
    if not size or not re.fullmatch(r"\d{1,12}", count):
        return not count
    unit = {"": 1, "k": 2**10, "K": 2**10, "M": 2**20, "G": 2**30}[size[2]]
    return int(size[1]) * unit * int(count) >= 10 * 2**30


def judge_rmdir(call: Invocation) -> None:
    """Judges `rmdir`, which deletes only empty folders."""
    for operand in call.options().operands:
        if classify(call.path(operand)) in (*_WHOLE, "system"):
            call.danger(f"deletes the system folder {operand}", effect="machine")


def judge_copy(call: Invocation) -> None:
    """Judges `cp`, `mv`, `install` and `ln`."""
    findings = call.shell.findings
    parsed = call.options(names("t S m o g target-directory suffix mode owner group strip-program"))
    *sources, target = [*parsed.operands, *parsed.values("t", "target-directory")] or [""]
    if call.program == "install":
        if parsed.has("d", "directory"):
            sources = []
        if any(map(_is_setuid, parsed.values("m", "mode"))):
            call.danger("lets a program run with the rights of its owner", effect="machine")
    elif not sources:
        return
    for source in sources:
        if call.program == "mv":
            judge_move(call.path(source), findings)
        elif call.program != "ln":
            judge_read(call.path(source), findings)
        call.scope.copy(source, target)
    _judge_target(call, sources, target)


def _judge_target(call: Invocation, sources: list[str], target: str) -> None:
    """Judges the file or folder to which files are copied."""
    path = call.path(target)
    for place in [path, *(f"{path.rstrip('/')}/{one.rpartition('/')[2]}" for one in sources)]:
        if path and classify(place) not in ("home", "unknown", "network"):
            judge_write(place, call.shell.findings)
    if sources and all(call.path(one) == "/dev/null" for one in sources):
        call.danger(f"empties {target}")
    if call.program == "mv" and path == "/dev/null":
        call.danger("destroys files by moving them to /dev/null")


def judge_truncate(call: Invocation) -> None:
    """Judges `truncate`."""
    parsed = call.options(names("s r o size reference"))
    sizes = parsed.values("s", "size")
    for operand in parsed.operands:
        path = call.path(operand)
        if is_open(path):
            call.danger("empties files whose names are known only when the command runs")
        else:
            judge_write(path, call.shell.findings)
    if any(is_huge(size) and not re.fullmatch(r"\d{2}G\w*", size) for size in sizes):
        call.danger("fills the disk", effect="machine")


def judge_fallocate(call: Invocation) -> None:
    """Judges `fallocate`."""
    for size in call.options(names("l o length offset")).values("l", "length"):
        if is_huge(size):
            call.danger("fills the disk", effect="machine")


def judge_written(call: Invocation) -> None:
    """Judges programs such as `tee`, which write to every file among their operands."""
    for operand in call.options().operands:
        judge_write(
            call.path(operand), call.shell.findings, append=call.options().has("a", "append")
        )


_TAR_VALUED = names(
    """f C T X I F H to-command checkpoint-action use-compress-program rsh-command directory file
    info-script"""
)


def judge_archive(call: Invocation) -> None:
    """Judges `tar`, which can write to any folder and run commands."""
    first = call.arguments[:1]
    if first and re.fullmatch(r"[A-Za-z]+", first[0]):
        # In the traditional form, such as `tar xf`, the options have no dash, so a dash is added.
        call.arguments[0] = "-" + first[0]
    parsed = call.options(_TAR_VALUED)
    commands = parsed.values(
        *("to-command", "I", "use-compress-program", "rsh-command", "F", "info-script")
    )
    for action in parsed.values("checkpoint-action"):
        if action.startswith("exec="):
            commands.append(action.removeprefix("exec="))
    for text in commands:
        call.run_text(text)
    files = [one for one in parsed.values("f", "file") if one != "-"]
    archive = call.scope.content(files[0]) if files else call.stdin
    if archive and DOWNLOAD in archive:
        call.scope.downloads.append(files[0] if files else "-")
    if parsed.has("remove-files"):
        call.danger("deletes the files after they are archived")
    if parsed.has("x", "extract", "get"):
        for folder in parsed.values("C", "directory"):
            if classify(call.path(folder)) in ("root", "system", "system_folder"):
                call.danger(f"extracts files into {folder}")
    else:
        _judge_archived(call, parsed)


def _judge_archived(call: Invocation, parsed: ParsedOptions) -> None:
    for path in parsed.operands:
        judge_read(call.path(path), call.shell.findings)
    for file in parsed.values("f", "file"):
        if file != "-" and parsed.has("c", "create", "r", "u"):
            judge_write(call.path(file), call.shell.findings)


def archive_output(call: Invocation) -> str:
    """Returns what `zip` and similar programs would print: unknown text, which is marked as secret
    if one of the archived files may be secret."""
    files = [text_of(call, [one]) for one in call.arguments if one[:1] != "-"]
    return derived(call.stdin or "", *files)


def run_find(call: Invocation) -> str:
    """Judges the actions of `find`, which can delete files and run programs. Returns what `find`
    would print."""
    arguments = call.arguments
    starts = _starts_of_find(arguments)
    folders = [call.path(one) or "." for one in starts] or [call.path(".")]
    at = 0
    while at < len(arguments):
        name = arguments[at]
        at += 1
        if name == "-delete":
            narrowed = _NARROWS.search(" ".join(arguments)) is not None
            for folder in folders:
                if _finds_generated(arguments) and classify(folder) == "workspace":
                    continue
                whole = classify(folder) in _WHOLE and not narrowed
                call.danger(f"deletes files below {folder}", "never" if whole else "ask")
        elif name in ("-fprint", "-fprintf", "-fls", "-fprint0") and at < len(arguments):
            judge_write(call.path(arguments[at]), call.shell.findings)
            at += 1
        elif name in ("-exec", "-execdir", "-ok", "-okdir"):
            in_folder = ANYTHING if name.endswith("dir") else None
            at = _run_action(call, arguments, at, folders, in_folder)
        elif name.startswith(("-name", "-path", "-iname", "-regex", "-ipath")):
            at += 1
        elif name[:1] == ANYTHING and at > 1:
            call.danger("has conditions that are known only when the command runs")
    return ONE_WORD + "\n"


def _finds_generated(arguments: list[str]) -> bool:
    """Returns whether `find` finds only files that the next build creates again, such as `*.pyc`.
    Returns False for expressions with operators such as `-o` and `!`."""
    names_ = [value for name, value in pairwise(arguments) if name in ("-name", "-iname")]
    plain = {"-o", "-or", "!", "-not", ","}.isdisjoint(arguments)
    return plain and any(map(is_generated, names_))


def _starts_of_find(arguments: list[str]) -> list[str]:
    """Returns the folders that `find` searches."""
    given = [one for one in arguments if one not in ("-H", "-L", "-P", "--")]
    return list(takewhile(lambda one: one[:1] not in ("-", "(", "!"), given))


def _run_action(
    call: Invocation, arguments: list[str], at: int, folders: list[str], in_folder: str | None
) -> int:
    end = at
    while end < len(arguments) and arguments[end] not in (";", "+"):
        end += 1
    last = "__pycache__" if _finds_generated(arguments) else ONE_WORD
    for folder in folders[:4]:
        path = f"{'*' if folder == '.' else folder.rstrip('/')}/{last}"
        call.run(
            [one.replace("{}", path) for one in arguments[at:end]] or ["true"], "", folder=in_folder
        )
    return end + 1


def run_fd(call: Invocation) -> str:
    """Evaluates the program that `fd` runs for each file (the words after `-x`). Returns what the
    program would print, or unknown text if there is no `-x`."""
    for position, argument in enumerate(call.arguments):
        if argument in ("-x", "-X", "--exec", "--exec-batch"):
            command = [
                re.sub(r"\{[./]*\}", ONE_WORD, one) for one in call.arguments[position + 1 :]
            ]
            if ONE_WORD not in command:
                command.append(ONE_WORD)
            return call.run(command, "")
    return ANYTHING


def judge_rsync(call: Invocation) -> None:
    """Judges `rsync`."""
    parsed = call.options(names("e f T B M exclude include filter rsh rsync-path files-from"))
    for text in parsed.values("e", "rsh", "rsync-path"):
        call.run_text(text)
    if parsed.has("n", "dry-run"):
        return
    if any(name.startswith("delete") for name in parsed.given) or parsed.has("remove-source-files"):
        call.danger("deletes files that are missing in the source")
    *sources, target = parsed.operands or [""]
    remote = is_remote(target)
    for source in sources:
        if remote:
            send_file(call, source)
    if not remote and target:
        judge_write(call.path(target), call.shell.findings)


def is_remote(target: str) -> bool:
    """Returns whether the target of a copy is on another machine."""
    return re.match(r"[^/\s]+:", target) is not None


def send_file(call: Invocation, path: str) -> None:
    """Judges a file that is sent to another machine. Adds a danger if the file may hold secrets."""
    if "\3" in text_of(call, [path]):
        call.danger(f"sends {path}, which holds secrets, to the network")


FILE_PROGRAMS: dict[str, Callable[[Invocation], None]] = {
    "rm": judge_rm,
    "unlink": judge_rm,
    "rmdir": judge_rmdir,
    "grm": judge_rm,
    "srm": judge_shred,
    "shred": judge_shred,
    "wipe": judge_shred,
    "chmod": judge_chmod,
    "chown": judge_chown,
    "chgrp": judge_chown,
    "dd": judge_dd,
    "cp": judge_copy,
    "mv": judge_copy,
    "install": judge_copy,
    "ln": judge_copy,
    "truncate": judge_truncate,
    "fallocate": judge_fallocate,
    "tee": judge_written,
    "patch": judge_written,
    "rename": judge_written,
    "rimraf": judge_rimraf,
    "sponge": judge_written,
    "tar": judge_archive,
    "bsdtar": judge_archive,
    "rsync": judge_rsync,
}
"""Programs that change the files among their operands, each with the function that judges it."""
