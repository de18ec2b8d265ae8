"""The files of the system that commands can see."""

from pathlib import Path

from hermes.boundary.execution.visible_files import contains_system, examined, settings_files


def test_files_that_some_users_may_not_read_are_found(tmp_path: Path) -> None:
    for name, mode in (
        ("passwd", 0o644),
        ("shadow", 0o640),
        ("ssl/cert", 0o644),
        ("ssl/key", 0o600),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
        (tmp_path / name).chmod(mode)
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "private").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("shadow")
    tmp_path.joinpath("ssl").chmod(0o755)
    found = examined(str(tmp_path))
    assert set(found.open) == {f"{tmp_path}/{name}" for name in ("passwd", "ssl/cert", "open")}
    assert set(found.closed) == {f"{tmp_path}/{name}" for name in ("shadow", "ssl/key", "private")}
    assert set(found.mixed) == {str(tmp_path), f"{tmp_path}/ssl"}
    assert examined(f"{tmp_path}/missing").closed == ()


def test_the_file_with_password_hashes_is_hidden() -> None:
    assert "/etc/shadow" in settings_files().closed
    assert "/etc/passwd" in settings_files().open


def test_a_folder_that_contains_the_system_is_recognised() -> None:
    assert contains_system(Path("/"))
    assert contains_system(Path("/usr"))
    assert not contains_system(Path("/usr/local/src/project"))
    assert not contains_system(Path("/home/ann"))
