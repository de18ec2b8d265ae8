"""The list of system calls that commands in a container of podman may use."""

import json
from pathlib import Path

from hermes.boundary.execution.container_seccomp import hardened, written_profile

PROFILE = {
    "defaultAction": "SCMP_ACT_ERRNO",
    "syscalls": [
        {"names": ["read", "unshare", "clone"], "action": "SCMP_ACT_ALLOW"},
        {"names": ["keyctl"], "action": "SCMP_ACT_ALLOW"},
    ],
}


def test_forbidden_calls_are_removed() -> None:
    first, *others = hardened(PROFILE)["syscalls"]
    assert first == {"names": ["read"], "action": "SCMP_ACT_ALLOW"}
    assert [one["names"] for one in others] == [["clone"], ["clone3"], *[["socket"]] * 4]
    assert all(one.get("args") or one["action"] == "SCMP_ACT_ERRNO" for one in others)


def test_the_first_profile_that_exists_is_written(tmp_path: Path) -> None:
    assert written_profile(tmp_path, [tmp_path / "missing"]) is None
    (tmp_path / "given").write_text(json.dumps(PROFILE))
    for _ in range(2):
        path = written_profile(tmp_path, [tmp_path / "missing", tmp_path / "given"])
        assert path
        assert json.loads(path.read_text()) == hardened(PROFILE)
