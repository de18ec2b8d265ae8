"""The command lines of bubblewrap."""

from pathlib import Path

from hermes.boundary.execution.bubblewrap import FileView, view_arguments, wrapped_arguments
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
