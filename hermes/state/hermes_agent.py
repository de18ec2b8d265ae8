"""Finds the data of another program, Hermes Agent, in a home. No file is changed."""

import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import msgspec

from hermes.types.value import Value

MOST_SKILLS = 10_000
"""Maximum number of folders below `skills` that are searched."""
PLATFORM_TOKENS = {
    "TELEGRAM_BOT_TOKEN": "telegram",
    "DISCORD_BOT_TOKEN": "discord",
    "SLACK_BOT_TOKEN": "slack",
    "WHATSAPP_CLOUD_ACCESS_TOKEN": "whatsapp_cloud",
    "SIGNAL_ACCOUNT": "signal",
    "MATRIX_ACCESS_TOKEN": "matrix",
    "MATTERMOST_TOKEN": "mattermost",
    "EMAIL_PASSWORD": "email",
    "TWILIO_AUTH_TOKEN": "sms",
    "HASS_TOKEN": "homeassistant",
    "DINGTALK_CLIENT_SECRET": "dingtalk",
    "FEISHU_APP_SECRET": "feishu",
    "WECOM_SECRET": "wecom",
    "WEIXIN_TOKEN": "weixin",
    "QQ_CLIENT_SECRET": "qqbot",
    "BLUEBUBBLES_PASSWORD": "bluebubbles",
}
"""Environment variables that hold credentials, each with the name of its platform."""


class HermesAgentData(Value):
    """The data of Hermes Agent that a home contains."""

    sessions: int | None = 0
    """Number of sessions; None if the database exists and can't be read."""
    cron_jobs: int = 0
    skills: int = 0
    tokens: tuple[str, ...] = ()
    """Platforms for which the environment has a token, but for which no plugin is installed."""

    def __str__(self) -> str:
        """Describes the data: `12 sessions, 3 cron jobs, 7 skills, tokens for telegram and
        discord`."""
        parts = [
            "a database" if self.sessions is None else _counted(self.sessions, "session"),
            _counted(self.cron_jobs, "cron job"),
            _counted(self.skills, "skill"),
            f"tokens for {' and '.join(self.tokens)}" if self.tokens else "",
        ]
        return ", ".join(filter(None, parts))


class _Jobs(msgspec.Struct):
    jobs: list[msgspec.Raw] = []


def found_data(
    home: Path, environ: Mapping[str, str], installed: Collection[str] = ()
) -> HermesAgentData:
    """Returns the data in the home, and the platforms that have credentials but no installed
    plugin."""
    named = {platform for name, platform in PLATFORM_TOKENS.items() if environ.get(name)}
    return HermesAgentData(
        sessions=_sessions(home / "state.db"),
        cron_jobs=_cron_jobs(home / "cron" / "jobs.json"),
        skills=sum(1 for _ in _skills(home / "skills")),
        tokens=tuple(sorted(named.difference(installed))),
    )


def _sessions(path: Path) -> int | None:
    """Returns the number of sessions; 0 if the file is our own database or does not exist, and None
    if it can't be read."""
    if not path.is_file() or not path.stat().st_size:
        return 0
    # With `immutable`, SQLite takes no lock and creates no WAL.
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            known = "select name from sqlite_master where type = 'table'"
            tables = {name for (name,) in database.execute(known)}
            # A database without tables counts as ours: with `immutable`, SQLite does not read the
            # WAL, and all tables of a young database may still be in the WAL.
            if not tables or "turns" in tables:
                return 0
            if not {"sessions", "messages"} <= tables:
                return None
            return int(database.execute("select count(*) from sessions").fetchone()[0])
    except sqlite3.Error:
        return None


def _cron_jobs(path: Path) -> int:
    try:
        return len(msgspec.json.decode(path.read_bytes(), type=_Jobs).jobs)
    except (OSError, msgspec.DecodeError):
        return 0


def _skills(folder: Path) -> Iterator[str]:
    for number, (place, _, files) in enumerate(os.walk(folder)):
        if number >= MOST_SKILLS:
            return
        if "SKILL.md" in files:
            yield place


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}" if number else ""
