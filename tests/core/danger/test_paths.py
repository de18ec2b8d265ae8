"""Each path has a class, such as a home, a system folder or a disk device."""

import pytest

from hermes.core.danger.holes import ONE_WORD, PLAIN_NAME
from hermes.core.danger.paths import (
    MAX_PATH,
    classify,
    holds_secret,
    is_certain,
    matches_several,
    may_hold_secret,
)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "root"),
        ("/*", "root"),
        ("~", "home"),
        ("~/*", "home"),
        ("/home/me", "home"),
        ("/root", "home"),
        ("/etc", "system_folder"),
        ("/usr/bin", "system_folder"),
        ("/etc/hosts", "system"),
        ("/srv", "system"),
        ("/var/www/site", "system"),
        ("/dev/sda1", "device"),
        ("/dev/mapper/root", "device"),
        ("/dev/null", "harmless_device"),
        ("/dev/tcp/host/80", "network"),
        ("/dev/input/event0", "system"),
        ("~/.bashrc", "startup"),
        ("~/.ssh/authorized_keys", "startup"),
        (".git/hooks/pre-push", "startup"),
        ("~/.ssh/id_rsa", "secret"),
        ("/etc/shadow", "secret"),
        (".env", "secret"),
        ("/tmp/x", "temporary"),
        ("/var/tmp", "temporary"),
        ("src/app.py", "workspace"),
        (".", "workspace"),
        ("", "workspace"),
        ("../x", "outside"),
        ("~/notes.txt", "outside"),
        ("/mnt/disk/x", "outside"),
        (f"{ONE_WORD}/x", "unknown"),
        (f"/etc/{ONE_WORD}", "system"),
        (f"/{ONE_WORD}", "system"),
        ("/" + "a" * MAX_PATH, "unknown"),
    ],
)
def test_a_path_has_a_class(path: str, kind: str) -> None:
    assert classify(path) == kind


@pytest.mark.parametrize("path", ["~/.ssh/config", "~/.ssh/id_rsa.pub", "~/.ssh/known_hosts", "a"])
def test_files_without_keys_hold_no_secret(path: str) -> None:
    assert not holds_secret(path)


def test_a_secret_must_not_be_sent() -> None:
    assert holds_secret("~/.aws/credentials")
    assert may_hold_secret(".env")
    assert may_hold_secret("~")
    assert not may_hold_secret("README.md")


def test_a_plain_name_does_not_change_the_class_of_a_path() -> None:
    assert is_certain(f"log-{PLAIN_NAME}.txt")
    assert not is_certain(f"log-{ONE_WORD}.txt")


def test_a_pattern_that_matches_all_names_is_found() -> None:
    assert matches_several("build/*")
    assert not matches_several("*.o")
