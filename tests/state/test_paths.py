"""A home has a fixed layout, and its files are written completely or not at all."""

import stat
from pathlib import Path

import pytest

from hermes.state.paths import STORE_NAME, Home, file_name, write_private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_home_knows_the_paths_of_its_files(tmp_path: Path) -> None:
    home = Home(root=tmp_path)
    assert home.config == tmp_path / "config.yaml"
    assert home.dotenv == tmp_path / ".env"
    assert home.store == tmp_path / STORE_NAME
    assert home.soul == tmp_path / "SOUL.md"
    assert home.api_key == tmp_path / "api_server.key"


def test_only_the_owner_can_read_the_folders(tmp_path: Path) -> None:
    home = Home(root=tmp_path / "deep" / "home")
    home.ensure()
    home.ensure()
    folders = [home.logs, home.run, home.backups, home.workspace, home.models, home.profiles]
    assert {mode(folder) for folder in (home.root, *folders)} == {0o700}


def test_each_session_has_a_file_name_of_its_own() -> None:
    names = {file_name(session) for session in ("agent:a", "agent:b", "agent:../b", "x" * 9999)}
    assert len(names) == 4
    assert all(len(name) == 32 and name.isalnum() for name in names)


def test_a_private_file_replaces_the_old_file_and_only_its_owner_can_read_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "new" / ".env"
    write_private(path, "A=1\n")
    path.chmod(0o644)
    write_private(path, "A=ü\n")
    assert path.read_text(encoding="utf-8") == "A=ü\n"
    assert mode(path) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_a_write_that_fails_keeps_the_old_file_and_leaves_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    write_private(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_private(path, "\ud800")
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_error_of_a_failed_write_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.mkdir()
    with pytest.raises(IsADirectoryError) as raised:
        write_private(path, "new")
    assert raised.value.filename == str(path)
    assert [one.name for one in tmp_path.iterdir()] == ["config.yaml"]


def test_a_link_to_a_file_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    link = tmp_path / "config.yaml"
    link.symlink_to(tmp_path / "dotfiles" / "hermes.yaml")
    write_private(link, "model: x\n")
    assert link.is_symlink()
    assert (tmp_path / "dotfiles" / "hermes.yaml").read_text(encoding="utf-8") == "model: x\n"


def test_only_the_owner_can_read_new_folders(tmp_path: Path) -> None:
    write_private(tmp_path / "cache" / "models" / "p.json", "{}")
    folders = (tmp_path / "cache", tmp_path / "cache" / "models")
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}
