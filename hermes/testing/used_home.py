"""A home that Hermes Agent has used, for tests."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

_TABLES = """
create table schema_version (version integer not null);
create table sessions (id text primary key, source text not null, title text, started_at real);
create table messages (id integer primary key, session_id text, role text, content text);
insert into schema_version values (22);
insert into sessions values ('a', 'cli', 'one', 1), ('b', 'telegram', 'two', 2), ('c', '', '', 3);
insert into messages (session_id, role, content) values ('a', 'user', 'hi');
"""


def make_used_home(home: Path) -> None:
    """Creates a home with three sessions in `state.db`, two cron jobs and one skill."""
    make_used_database(home)
    _write(home / "cron" / "jobs.json", json.dumps({"jobs": [{"id": "1"}, {"id": "2"}]}))
    _write(home / "skills" / "writing" / "letters" / "SKILL.md", "---\nname: letters\n---\n")
    _write(home / "skills" / ".hub" / "lock.json", "{}")
    _write(home / "logs" / "gateway.log", "a line of another program\n")


def make_used_database(home: Path) -> None:
    home.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(home / "state.db")) as database:
        database.executescript(_TABLES)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
