"""Judges programs that start containers. The verdict depends on which folders and rights of the
host the container gets."""

import re

from hermes.core.danger.holes import ANYTHING, is_open
from hermes.core.danger.invocation import Invocation
from hermes.core.danger.options import names, parse_options
from hermes.core.danger.paths import classify, holds_secret

_OUTER = names(
    "H l c f p n host log-level context config file project-name profile env-file namespace"
)
_RUN = names(
    """v e w u p h l m a c env volume workdir user name network net publish mount label hostname
    memory entrypoint env-file cpus restart platform device cap-add cap-drop security-opt add-host
    dns expose gpus ipc pid uts userns ulimit tmpfs shm-size log-driver volumes-from stop-signal
    link cidfile health-cmd group-add runtime pull attach storage-opt sysctl cgroupns memory-swap
    annotation"""
)
_HOST_RIGHTS = names("ALL SYS_ADMIN SYS_MODULE SYS_RAWIO SYS_PTRACE SYS_BOOT DAC_READ_SEARCH BPF")
"""Rights (Linux capabilities) with which a program can break out of its container."""
_HOST_FOLDERS = ("root", "system", "system_folder", "home", "device")


def run_container(call: Invocation) -> str | None:
    """Judges the commands that run a program in a container, such as `docker run` and `docker
    exec`. Returns what the program would print. Returns None for all other commands of docker."""
    words = call.options(_OUTER, permute=False).operands
    if words[:1] == ["compose"]:
        words = parse_options(words[1:], _OUTER, permute=False).operands
        return _run_inside(call, words[1:]) if words[:1] in (["exec"], ["run"]) else None
    if words[:1] == ["container"]:
        words = words[1:]
    if words[:1] == ["exec"]:
        return _run_inside(call, words[1:])
    return _run_image(call, words[1:]) if words[:1] in (["run"], ["create"]) else None


def _run_image(call: Invocation, words: list[str]) -> str:
    """Judges the mounts and rights of a new container, and the command that the container runs.
    Returns the output of this command."""
    parsed = parse_options(words, _RUN, permute=False)
    sources = [mount.partition(":")[0] for mount in parsed.values("v", "volume")]
    sources += re.findall(r"(?:src|source)=([^,]+)", ",".join(parsed.values("mount")))
    sources += [device.partition(":")[0] for device in parsed.values("device")]
    for source in sources:
        _judge_mount(call, source)
    rights = {one.upper().removeprefix("CAP_") for one in parsed.values("cap-add")}
    unconfined = any(one.endswith("unconfined") for one in parsed.values("security-opt"))
    if parsed.has("privileged") or rights & _HOST_RIGHTS or unconfined:
        call.danger("starts a container with all rights on the host", effect="machine")
    if "host" in parsed.values("pid", "ipc", "uts", "userns"):
        call.danger("starts a container that shares the processes of the host", effect="machine")
    image, command = parsed.operands[:1], parsed.operands[1:]
    return _run_inside(call, [*image, *parsed.values("entrypoint"), *command])


def _judge_mount(call: Invocation, source: str) -> None:
    path = call.path(source)
    if is_open(path[:1]):
        call.danger(
            "mounts a folder whose name is known only when the command runs", effect="unclear"
        )
    elif classify(path) in _HOST_FOLDERS or holds_secret(path):
        call.danger(f"gives a container access to {source} of the host", effect="machine")


def _run_inside(call: Invocation, words: list[str]) -> str:
    command = parse_options(words, _RUN, permute=False).operands[1:]
    if not command or command[0].startswith("-"):
        return ANYTHING
    call.shell.findings.elsewhere += 1
    try:
        return call.run(command)
    finally:
        call.shell.findings.elsewhere -= 1
