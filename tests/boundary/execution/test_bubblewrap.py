"""The command lines of bubblewrap."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.boundary.execution.bubblewrap import (
    FileView,
    find_bubblewrap,
    view_arguments,
    wrapped_arguments,
)
from hermes.boundary.execution.overlay import makes_overlays
from hermes.types.execution import Mount

VIEW = FileView(
    workspace=Path("/w/own"),
    shown=Path("/w/shown"),
    hidden=(Path("/w/own/.hermes"), Path("/elsewhere")),
    temporary=Path("/s/tmp"),
    mounts=(Mount(path="/data"), Mount(path="/w/own", writable=True)),
)


def test_only_listed_files_are_visible() -> None:
    arguments = view_arguments(VIEW)
    text = " ".join(arguments)
    assert "--bind /w/own /w/shown --tmpfs /w/shown/.hermes" in text
    assert "--bind /w/own /w/own --tmpfs /w/own/.hermes" in text
    assert "--ro-bind /data /data" in text
    assert "--bind /s/tmp /tmp --tmpfs /home/sandbox" in text
    assert arguments[-2:] == ("--remount-ro", "/")
    for option in ("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc"):
        assert option in arguments
    assert "--share-net" not in arguments


def test_a_background_command_outlives_its_parent() -> None:
    command = ("/bin/sh", "-c", "true")
    brief = wrapped_arguments(VIEW, Path("/w/shown/a"), command, lasting=False)
    lasting = wrapped_arguments(VIEW, Path("/w/shown/a"), command, lasting=True)
    assert set(brief) - set(lasting) == {"--die-with-parent"}
    assert brief[-6:] == ("--chdir", "/w/shown/a", "--", *command)


def test_a_folder_with_an_overlay_is_not_bound() -> None:
    arguments = view_arguments(replace(VIEW, overlays={Path("/w/shown"): Path("/s/1")}))
    text = " ".join(arguments)
    shown = "--overlay-src /s/1/empty --overlay /w/own /s/1/work /w/shown --tmpfs /w/shown/.hermes"
    assert shown in text
    assert "--bind /w/own /w/shown" not in text


@pytest.mark.parametrize("answer", ["exit 0", "exit 1"])
def test_a_version_without_overlays_is_not_used_if_a_newer_one_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    older = tmp_path / "bwrap"
    older.write_text(f"#!/bin/sh\n{answer}\n")
    older.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_bubblewrap.__wrapped__()
    assert found
    assert makes_overlays(found)
