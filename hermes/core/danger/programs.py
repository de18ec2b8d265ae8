"""Chooses, by the name of a program, the functions that judge the program and compute its
output."""

from collections.abc import Callable

from hermes.core.danger.containers import run_container
from hermes.core.danger.databases import SQL_CLIENTS, run_mongo, run_redis, run_sql_client
from hermes.core.danger.file_access import judge_read
from hermes.core.danger.file_programs import FILE_PROGRAMS, archive_output, run_fd, run_find
from hermes.core.danger.git_program import run_git
from hermes.core.danger.holes import DOWNLOAD, SECRET_TEXT, derived, is_known
from hermes.core.danger.interpreters import (
    CODE_OPTIONS,
    SHELLS,
    run_awk,
    run_debugger,
    run_editor,
    run_interpreter,
    run_make,
    run_python,
    run_sed,
    run_shell,
    run_written_file,
)
from hermes.core.danger.invocation import Invocation
from hermes.core.danger.network_programs import (
    judge_cloud_copy,
    judge_lookup,
    judge_ssh,
    run_curl,
    run_mail,
    run_netcat,
    run_scp,
    run_socat,
    run_wget,
)
from hermes.core.danger.options import names
from hermes.core.danger.outputs import OUTPUTS, text_of
from hermes.core.danger.processes import judge_kill, judge_kill_by_name
from hermes.core.danger.rules import (
    is_known_program,
    judge_by_rules,
    judge_verbs,
    prints_secret,
    uses_network,
)
from hermes.core.danger.script_files import add_script_files
from hermes.core.danger.shell_builtins import BUILTINS, prints_settings
from hermes.core.danger.spoofing import hides_text
from hermes.core.danger.wrappers import (
    grammars,
    run_busybox,
    run_env,
    run_parallel,
    run_wrapped,
    run_xargs,
)

_READERS = names(
    """cat tac head tail less more bat nl od xxd hexdump strings base64 base32 gzip bzip2 xz zstd
    cut paste sort uniq grep egrep fgrep rg ag awk gawk mawk sed zip 7z gpg tar bsdtar cpio jq yq
    view nano vim vi diff cmp pv dd rev fold fmt column split openssl age"""
)
"""Programs that print or copy the content of their operands."""
_PATTERN_FIRST = names("grep egrep fgrep rg ag awk gawk mawk sed jq yq")
"""Programs of `_READERS` whose first operand is a pattern or a script, not a file."""
_READER_VALUED = names(
    "e f A B C m g t k d F regexp file context max-count glob type include exclude"
)
_PRINTING = names("echo printf grep egrep fgrep rg ag git gh glab hg svn jq : true")
"""Programs whose arguments are often text for people, in which invisible characters are
harmless."""

_RUN: dict[str, Callable[[Invocation], str | None]] = {
    **BUILTINS,
    **OUTPUTS,
    **dict.fromkeys(SHELLS, run_shell),
    **dict.fromkeys(CODE_OPTIONS, run_interpreter),
    **dict.fromkeys(("python", "pypy", "ipython", "bpython"), run_python),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), run_awk),
    **dict.fromkeys(("sed", "gsed"), run_sed),
    **dict.fromkeys(("ed", "ex", "red", "vi", "vim", "nvim", "view"), run_editor),
    **dict.fromkeys(("zip", "7z", "cpio", "gzip", "bzip2", "xz"), archive_output),
    **dict.fromkeys(("gdb", "lldb"), run_debugger),
    **dict.fromkeys(("make", "gmake"), run_make),
    "find": run_find,
    "gfind": run_find,
    "fd": run_fd,
    "fdfind": run_fd,
    "env": run_env,
    "genv": run_env,
    "xargs": run_xargs,
    "gxargs": run_xargs,
    "parallel": run_parallel,
    "busybox": run_busybox,
    "toybox": run_busybox,
    "git": run_git,
    "curl": run_curl,
    **dict.fromkeys(("wget", "wget2", "aria2c"), run_wget),
    **dict.fromkeys(("nc", "ncat", "netcat", "telnet"), run_netcat),
    "socat": run_socat,
    **dict.fromkeys(("scp", "sftp", "ftp", "lftp"), run_scp),
    **dict.fromkeys(("mail", "mailx", "sendmail", "mutt", "msmtp", "swaks"), run_mail),
    **dict.fromkeys(("docker", "podman", "nerdctl", "docker-compose"), run_container),
    **dict.fromkeys(("mongosh", "mongo"), run_mongo),
    **dict.fromkeys(("redis-cli", "valkey-cli", "keydb-cli"), run_redis),
    **dict.fromkeys(SQL_CLIENTS, run_sql_client),
}
"""Programs, each with the function that evaluates it and returns its output. If the function
returns None, the output is computed as for a program that is not in this table."""
_JUDGES: dict[str, Callable[[Invocation], None]] = {
    **FILE_PROGRAMS,
    "kill": judge_kill,
    **dict.fromkeys(("killall", "pkill", "skill", "killall5"), judge_kill_by_name),
    **dict.fromkeys(("ssh", "autossh"), judge_ssh),
    **dict.fromkeys(("dig", "nslookup", "host", "drill", "kdig", "ping", "ping6"), judge_lookup),
    **dict.fromkeys(
        ("aws", "gsutil", "gcloud", "az", "rclone", "s3cmd", "mc", "s5cmd"), judge_cloud_copy
    ),
}
"""Programs, each with a function that judges it. The rules in `rules.toml` judge these programs,
too."""
_PLAIN = names(
    """ls cd mkdir touch man info which type whereis apropos whatis help hash test [ [[ stat file
    diff cmp comm tree realpath readlink ln code subl pytest tox nox tsc ruff mypy black sleep let
    pgrep pidof pushd lsof compgen complete bind dict aspell logger notify-send say wall write
    figlet cowsay toilet true false : git wc du df"""
)
"""Programs whose operands are data or files, never verbs such as `delete`."""
_DOWNLOADING = names("lynx links w3m http https xh httpie fetch aria2c ftp tftp gh")


def run_program(call: Invocation) -> str:
    """Judges a program and everything that it starts. Returns what the program would print."""
    call.program = _plain_name(call.program)
    if "/" in call.word:
        content = call.scope.content(call.word)
        if content is None or not is_known(content):
            call.add_script(call.word, "program")
        if content is not None:
            return run_written_file(call, content)
    _judge(call)
    output = None
    if run := _RUN.get(call.program):
        output = run(call)
    if output is None:
        output = run_wrapped(call)
    if output is None:
        output = _output(call)
    if DOWNLOAD in output:
        call.shell.findings.downloads = True
    return output


def _judge(call: Invocation) -> None:
    """Judges a program without evaluating the programs that it starts."""
    joined = "".join(call.arguments)
    if not joined.isprintable() and call.program not in _PRINTING and hides_text(joined):
        call.danger("an argument has invisible or misleading characters")
    if judge := _JUDGES.get(call.program):
        judge(call)
    judge_by_rules(call)
    if uses_network(call):
        call.shell.findings.leaves = True
    if not _is_known(call.program):
        judge_verbs(call)
    add_script_files(call)
    if call.word.startswith("/etc/init.d/") and not {"stop", "restart"}.isdisjoint(call.arguments):
        call.danger("stops or restarts a service", effect="machine")
    for path in _files_of_reader(call):
        judge_read(call.path(path), call.shell.findings)


def _is_known(program: str) -> bool:
    """Returns whether the detector knows the meaning of the program's operands."""
    return (
        program in _PLAIN
        or program in _READERS
        or program in _RUN
        or program in _JUDGES
        or program in grammars()
        or is_known_program(program)
    )


def _files_of_reader(call: Invocation) -> list[str]:
    """Returns the files whose content a program prints or copies."""
    if call.program not in _READERS:
        return []
    parsed = call.options(_READER_VALUED)
    has_pattern = call.program in _PATTERN_FIRST and not parsed.has("e", "f", "regexp", "file")
    return parsed.operands[1:] if has_pattern else parsed.operands


def _output(call: Invocation) -> str:
    """Returns the output of a program whose output no other function computes. In most cases, this
    is unknown text. The text is marked as secret or downloaded if the program reads secret or
    downloaded text."""
    if call.program == "env" or prints_secret(call):
        return SECRET_TEXT
    if call.program in _DOWNLOADING:
        return DOWNLOAD
    if prints_settings(call):
        return ":"
    files = [text_of(call, [one]) for one in _files_of_reader(call)]
    return derived(call.stdin or "", *call.arguments, *files)


def _plain_name(name: str) -> str:
    """Returns the name of a program without its version, such as `python` for `python3.11`."""
    if name in _RUN or name in _JUDGES:
        return name
    bare = name.rstrip("0123456789.-")
    return bare if bare in _RUN or bare in _JUDGES else name.removesuffix(".exe")
