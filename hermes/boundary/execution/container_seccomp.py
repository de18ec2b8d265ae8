"""The system calls that commands in a container of podman may use. Podman's own list lets commands
create user namespaces and use the keys that the kernel stores for the user. Docker's own list
forbids both, so containers of docker use it unchanged.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from hermes.boundary.execution.seccomp import (
    AF_INET,
    AF_INET6,
    AF_NETLINK,
    AF_UNIX,
    FORBIDDEN_CALLS,
    NAMESPACE_FLAGS,
)

PODMAN_PROFILES = (
    Path("/etc/containers/seccomp.json"),
    Path("/usr/share/containers/seccomp.json"),
)
PROFILE_NAME = "seccomp.json"
_FILTERED = frozenset({"clone", "clone3", "socket"})
_ALLOW, _NO_SUCH_CALL = "SCMP_ACT_ALLOW", 38


def written_profile(folder: Path, profiles: Sequence[Path] = PODMAN_PROFILES) -> Path | None:
    """Copies podman's list of allowed system calls to a file in the folder, without the calls that
    no command may use. Returns the path of the file; None if podman has no list."""
    for path in profiles:
        if path.is_file():
            data = msgspec.json.encode(hardened(msgspec.json.decode(path.read_bytes())))
            written = folder / PROFILE_NAME
            if not written.is_file() or written.read_bytes() != data:
                fresh = written.with_suffix(".new")
                fresh.write_bytes(data)
                fresh.replace(written)
            return written
    return None


def hardened(profile: dict[str, Any]) -> dict[str, Any]:
    """Returns the profile without the forbidden calls."""
    removed = FORBIDDEN_CALLS | _FILTERED
    kept = []
    for rule in profile["syscalls"]:
        names = [name for name in rule["names"] if name not in removed]
        if names:
            kept.append({**rule, "names": names})
    return {**profile, "syscalls": [*kept, *_argument_rules()]}


def _argument_rules() -> list[dict[str, Any]]:
    """Returns rules for calls that are allowed with some arguments only."""
    no_namespace = {
        "index": 0,
        "value": NAMESPACE_FLAGS,
        "valueTwo": 0,
        "op": "SCMP_CMP_MASKED_EQ",
    }
    families = [
        {"index": 0, "value": family, "op": "SCMP_CMP_EQ"}
        for family in (AF_UNIX, AF_INET, AF_INET6, AF_NETLINK)
    ]
    return [
        {"names": ["clone"], "action": _ALLOW, "args": [no_namespace]},
        # The arguments of clone3 are in memory, which a filter can't read. Without clone3, programs
        # use clone.
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _NO_SUCH_CALL},
        *({"names": ["socket"], "action": _ALLOW, "args": [one]} for one in families),
    ]
