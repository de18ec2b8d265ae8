"""Data of Hermes Agent is found and not changed."""

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hermes.state.hermes_agent import found_data
from hermes.testing.used_home import make_used_home


def content(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_nothing_is_found_in_a_new_home(tmp_path: Path) -> None:
    assert str(found_data(tmp_path, {})) == ""
    (tmp_path / "state.db").touch()
    assert str(found_data(tmp_path, {"TELEGRAM_BOT_TOKEN": ""})) == ""


def test_all_data_that_is_not_used_is_counted(tmp_path: Path) -> None:
    make_used_home(tmp_path)
    before = content(tmp_path)
    tokens = {"TELEGRAM_BOT_TOKEN": "1:x", "DISCORD_BOT_TOKEN": "x", "SLACK_BOT_TOKEN": "x"}
    found = found_data(tmp_path, tokens, installed=("slack",))
    assert str(found) == "3 sessions, 2 cron jobs, 1 skill, tokens for discord and telegram"
    assert content(tmp_path) == before


def test_our_own_earlier_database_is_not_data_of_hermes_agent(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "state.db")) as database:
        database.executescript("create table turns (id); create table sessions (id)")
    assert str(found_data(tmp_path, {})) == ""


@pytest.mark.parametrize("data", [b"no database", b"SQLite format 3\0" + b"\xff" * 5000])
def test_data_that_can_not_be_read_is_still_reported(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "state.db").write_bytes(data)
    assert str(found_data(tmp_path, {})) == "a database"


def test_the_database_of_another_program_is_reported(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "state.db")) as database:
        database.executescript("create table something (id)")
    assert str(found_data(tmp_path, {})) == "a database"


@pytest.mark.parametrize("text", ["", "[]", json.dumps({"jobs": 3}), "{"])
def test_a_list_of_jobs_in_an_unknown_format_counts_as_empty(tmp_path: Path, text: str) -> None:
    (tmp_path / "cron").mkdir()
    (tmp_path / "cron" / "jobs.json").write_text(text)
    assert str(found_data(tmp_path, {})) == ""
