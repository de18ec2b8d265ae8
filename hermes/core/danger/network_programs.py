"""Judges programs that send data to the network or receive it.

Nothing is executed. The functions return what a program would print, as far as it is known.
"""

import re

from hermes.core.danger.file_access import judge_write
from hermes.core.danger.file_programs import is_remote, send_file
from hermes.core.danger.holes import ANYTHING, DOWNLOAD, PLAIN_NAME, SECRET_TEXT, is_open
from hermes.core.danger.invocation import Invocation
from hermes.core.danger.options import names
from hermes.core.danger.outputs import text_of

_CURL_VALUED = names(
    """A b c C d D e E F H K m o P Q r t T u U w x X y Y z data data-raw data-binary data-urlencode
    data-ascii form form-string header output request user url upload-file user-agent referer
    cookie cookie-jar config max-time connect-timeout retry proxy cacert cert key resolve range
    write-out json output-dir interface limit-rate retry-delay retry-max-time proto"""
)
_WGET_VALUED = names(
    """O o a i P U e T t w Q A R D output-document output-file post-file post-data body-file
    body-data header user password user-agent directory-prefix input-file timeout tries method
    execute"""
)


def _sends(call: Invocation, *texts: str) -> None:
    if any(SECRET_TEXT in text for text in texts):
        call.danger("sends secrets to the network")


def run_curl(call: Invocation) -> str:
    """Judges the data that `curl` sends, and the files that it writes. Returns what `curl`
    would print."""
    parsed = call.options(_CURL_VALUED)
    if "DELETE" in parsed.values("X", "request") and not all(map(_is_record, parsed.operands)):
        call.danger("deletes data of a service")
    for value in parsed.values("d", "data", "data-binary", "data-ascii", "json", "data-urlencode"):
        if "@" in value and (value.startswith("@") or "data-urlencode" in parsed.given):
            _send_named(call, value.partition("@")[2])
        _sends(call, value)
    for value in parsed.values("F", "form"):
        found = re.search(r"=[@<]([^;]+)", value)
        _send_named(call, found[1]) if found else _sends(call, value)
    for value in parsed.values("T", "upload-file"):
        _send_named(call, value)
    _sends(call, *parsed.operands, *parsed.values("url"))
    for value in parsed.values("K", "config"):
        if "\4" in text_of(call, [value]):
            call.danger("reads its options from the network")
    outputs = parsed.values("o", "output")
    if parsed.has("O", "remote-name"):
        outputs += [_local_name(one) for one in parsed.operands]
    return _received(call, outputs)


def _is_record(url: str) -> bool:
    """Returns whether the URL names a single item of a service, and not a whole collection or
    index."""
    return re.fullmatch(r"(?:https?://)?[^/]+/[^/*?]+/.*\w", url) is not None


def _send_named(call: Invocation, path: str) -> None:
    if path in ("-", "."):
        _sends(call, call.stdin or "")
    else:
        send_file(call, path)


def _local_name(url: str) -> str:
    """Returns the name of the file in which `wget` and `curl -O` save the content of a URL."""
    name = re.split(r"[/:]", re.sub(r"[?#].*", "", url, flags=re.DOTALL))[-1]
    return PLAIN_NAME if is_open(name) else name


def _received(call: Invocation, outputs: list[str]) -> str:
    for path in outputs:
        if path not in ("-", "/dev/stdout"):
            judge_write(call.path(path), call.shell.findings)
            call.scope.write(path, DOWNLOAD)
    return DOWNLOAD if not outputs or "-" in outputs else ""


def run_wget(call: Invocation) -> str:
    """Judges the data that `wget` and similar programs send, and the files into which they
    download. Returns what the program would print."""
    parsed = call.options(_WGET_VALUED)
    for path in parsed.values("post-file", "body-file", "i", "input-file"):
        _send_named(call, path)
    _sends(call, *parsed.operands, *parsed.values("post-data", "body-data"))
    for setting in parsed.values("e", "execute"):
        if found := re.match(r"use_askpass\s*=\s*(.+)", setting):
            call.run_text(found[1])
    outputs = parsed.values("O", "output-document")
    if not outputs:
        folder = "".join(parsed.values("P", "directory-prefix")[:1])
        files = [_local_name(one) for one in parsed.operands]
        outputs = [f"{folder.rstrip('/')}/{name}" if folder else name for name in files if name]
    return _received(call, outputs)


def run_netcat(call: Invocation) -> str:
    """Judges the data that `nc`, `ncat` or `telnet` sends, and the programs that it starts. Returns
    what the judged program would print."""
    parsed = call.options(names("e c p s w q i x X P o sh-exec exec lua-exec"))
    if parsed.has("e", "c", "exec", "sh-exec", "lua-exec"):
        call.danger("connects a program to the network")
    _sends(call, call.stdin or "")
    return DOWNLOAD


def run_socat(call: Invocation) -> str:
    """Judges the data that `socat` sends, and the programs that it starts. Returns what
    `socat` would print."""
    addresses = [one for one in call.arguments if one[:1] != "-"]
    executes = [one for one in addresses if re.match(r"(EXEC|SYSTEM|SHELL):", one, re.IGNORECASE)]
    if executes:
        call.danger("connects a program to the network")
    _sends(call, call.stdin or "")
    for address in addresses:
        if found := re.match(r"(?:FILE|OPEN|GOPEN|CREATE):([^,]+)", address, re.IGNORECASE):
            send_file(call, found[1])
    return DOWNLOAD


def judge_lookup(call: Invocation) -> None:
    """Judges `dig` and similar programs, which send their operands to servers of other people."""
    _sends(call, *call.arguments)


def run_scp(call: Invocation) -> str:
    """Judges the files that `scp` and `sftp` send or write. Returns what the program would
    print."""
    parsed = call.options(names("c F i J l o P S D X"))
    *sources, target = parsed.operands or [""]
    for setting in parsed.values("o"):
        judge_ssh_setting(call, setting)
    if is_remote(target):
        for source in sources:
            send_file(call, source)
    elif target:
        judge_write(call.path(target), call.shell.findings)
        for source in filter(is_remote, sources):
            for place in (target, f"{target.rstrip('/')}/{_local_name(source)}"):
                call.scope.write(place, DOWNLOAD)
    for path in re.findall(r"^\s*m?(?:re)?put\s+(\S+)", call.stdin or "", re.MULTILINE):
        send_file(call, path)
    return ANYTHING


def judge_ssh_setting(call: Invocation, setting: str) -> None:
    """Judges a value of the option `-o` of ssh. Some of these settings make ssh run a command."""
    found = re.match(
        r"\s*(ProxyCommand|LocalCommand|KnownHostsCommand)\s*[= ]\s*(.+)", setting, re.I
    )
    if found:
        call.run_text(found[2])


def judge_ssh(call: Invocation) -> None:
    """Judges the options and the input of `ssh`. The module `wrappers` evaluates the command that
    runs on the other machine."""
    parsed = call.options(names("B b c D E e F I i J L l m O o P p Q R S W w"), permute=False)
    for setting in parsed.values("o"):
        judge_ssh_setting(call, setting)
    _sends(call, call.stdin or "")
    if len(parsed.operands) == 1 and call.stdin is not None:
        call.run(["bash"], call.stdin)


def judge_cloud_copy(call: Invocation) -> None:
    """Judges the files that are uploaded by command-line tools of cloud providers, such as
    `aws`."""
    verbs = {"cp", "sync", "copy", "put", "mv", "rsync", "upload", "put-object"}
    if verbs.isdisjoint(call.arguments):
        return
    for argument in call.arguments:
        if argument[:1] != "-" and not re.match(r"\w+://|\w+:", argument) and argument not in verbs:
            send_file(call, argument)


def run_mail(call: Invocation) -> str:
    """Judges the files and the input that mail programs send. Returns what the program would
    print."""
    for path in call.options(names("s a A r c b f q")).values("a", "A", "q"):
        send_file(call, path)
    _sends(call, call.stdin or "")
    return ""
