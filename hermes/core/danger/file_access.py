"""Judges the files that a command writes, deletes, moves or reads."""

from hermes.core.danger.findings import Findings
from hermes.core.danger.paths import (
    classify,
    holds_secret,
    is_certain,
    is_generated,
    matches_several,
)

_WHOLE = ("root", "home", "system_folder")


def judge_write(path: str, findings: Findings, *, append: bool = False) -> None:
    """If it is dangerous to create or overwrite this file, adds the danger to `findings`."""
    changes = "appends to" if append else "overwrites"
    if classify(path) not in ("workspace", "temporary", "harmless_device", "secret"):
        findings.leaves = True
    match classify(path):
        case "device":
            findings.add(f"writes to the device {path}", "never")
        case "system" | "system_folder" | "root":
            findings.add(f"{changes} the system file {path}", effect="machine")
        case "startup":
            findings.add(f"{changes} {path}, which runs or allows commands later")
        case "secret":
            if path.startswith(("/", "~")):
                findings.add(f"{changes} {path}, which holds credentials")
        case "network":
            findings.add(f"opens a network connection through {path}")
        case "unknown":
            findings.add(
                "writes to a file whose name is known only when the command runs", effect="unclear"
            )
        case _:
            pass


def judge_delete(path: str, findings: Findings, *, recursive: bool) -> None:
    """If it is dangerous to delete this file or folder, adds the danger to `findings`."""
    kind = classify(path)
    if is_generated(path):
        return
    if recursive:
        if kind in _WHOLE:
            findings.add(f"deletes {path} with everything in it", "never")
        elif kind == "device":
            findings.add(f"deletes the device {path}", effect="machine")
        findings.add(f"deletes {path or '.'} with everything in it")
    elif kind == "unknown" or not is_certain(path):
        findings.add("deletes files whose names are known only when the command runs")
    elif kind not in ("workspace", "temporary", "harmless_device"):
        findings.add(f"deletes {path}, which is outside of the workspace")
    elif matches_several(path) and kind == "workspace":
        findings.add(f"deletes every file that {path} matches")


def judge_move(path: str, findings: Findings) -> None:
    """If it is dangerous to move this file or folder away, adds the danger to `findings`."""
    if classify(path) in (*_WHOLE, "system", "device", "startup"):
        findings.add(f"moves {path} away")
    elif holds_secret(path):
        findings.add(f"moves {path}, which holds credentials")


def judge_read(path: str, findings: Findings) -> None:
    """If the file holds credentials, adds a danger to `findings`, because it is dangerous to show
    or copy them."""
    if holds_secret(path):
        findings.add(f"reads {path}, which holds credentials", effect="machine")
