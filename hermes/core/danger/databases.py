"""Judges statements that are sent to databases.

Nothing is executed. The functions return what a client would print, as far as it is known.
"""

import re

from hermes.core.danger.holes import ANYTHING, DOWNLOAD, ONE_WORD, derived, is_known
from hermes.core.danger.invocation import Invocation
from hermes.core.danger.options import names

MAX_SQL = 50_000
"""Length of the longest SQL text that is judged, in characters. Longer text needs approval."""

_SPEC = {
    "psql": ("c command", "f file", "d h p U v o dbname host port username"),
    "mysql": ("e execute", "", "u h P D database host user port"),
    "mariadb": ("e execute", "", "u h P D database host user port"),
    "sqlite3": ("cmd", "init", ""),
    "sqlite": ("", "", ""),
    "duckdb": ("c s cmd", "f init", ""),
    "sqlcmd": ("Q q", "i", "S d U P"),
    "cqlsh": ("e execute", "f file", "u p k"),
    "clickhouse-client": ("q query", "", "h host port user password database"),
    "clickhouse": ("q query", "", ""),
    "cockroach": ("e execute", "f file", "host url"),
    "snowsql": ("q query", "f filename", "a u d s w"),
    "usql": ("c command", "f file", ""),
    "sqlplus": ("", "", ""),
    "bq": ("", "", ""),
    "trino": ("execute", "f file", ""),
    "presto": ("execute", "f file", ""),
    "influx": ("execute", "", ""),
    "hive": ("e", "f", ""),
    "beeline": ("e", "f", "u n p"),
    "osqueryi": ("", "", ""),
}
"""For each client: the options whose value is a statement, the options whose value is a file of
statements, and the other options that take a value."""
SQL_CLIENTS = tuple(_SPEC)
_LITERALS = re.compile(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:[^']|'')*(?:'|\Z)|\$\$.*?(?:\$\$|\Z)", re.DOTALL
)
"""Comments and strings. A comment or string that is not closed extends to the end of the text."""
_LOSES = re.compile(
    r"\s*(?:explain\s+analyze\s+)?(?:drop\s+(?:table|database|schema|view|index|user|role|column"
    r"|keyspace|materialized|sequence|function|trigger|owned|tablespace|type|extension|bucket"
    r"|measurement|collection)|truncate\b|alter\s+table\s.*\bdrop\b|flush\s+tables|reset\s+master"
    r"|purge\s+binary|shutdown\b)",
    re.IGNORECASE | re.DOTALL,
)
_CHANGES_ALL = re.compile(
    r"\s*(?:delete\s+from|update)\s(?!.*\bwhere\b)", re.IGNORECASE | re.DOTALL
)
_ALWAYS = re.compile(r".*\bwhere\s+(?:1\s*=\s*1|true)\s*", re.IGNORECASE | re.DOTALL)
_GRANTS = re.compile(
    r"\s*(?:grant\s+all|create\s+user\s.*superuser|alter\s+(?:user|role)\s.*superuser)",
    re.IGNORECASE | re.DOTALL,
)
_SERVER_PROGRAM = re.compile(
    r"\b(?:to|from)\s+program\b|\binto\s+(?:out|dump)file\b|\bxp_cmdshell\b"
    r"|\bload_extension\s*\(|\bwritefile\s*\(",
    re.IGNORECASE,
)
_SHELL_LINE = re.compile(r"^\s*(?:\\!|\.shell\s|\.system\s|system\s|!)\s*(.+)", re.MULTILINE)
_MONGO = re.compile(
    r"dropDatabase\s*\(|\.drop\s*\(|\.(?:deleteMany|remove|updateMany)\s*\(\s*(?:\{\s*\})?\s*[,)]"
    r"|\.dropUser|shutdownServer|\.dropIndexes|renameCollection"
)
_REDIS = names("FLUSHALL FLUSHDB SHUTDOWN DEBUG SWAPDB")


def judge_sql(text: str, call: Invocation) -> None:
    """Judges SQL statements, and lines such as `.shell ls`, with which a client runs a shell
    command. Strings and comments in statements are ignored."""
    if len(text) > MAX_SQL:
        call.danger("runs statements that are too long to check")
    for command in _SHELL_LINE.findall(text):
        call.run_text(command)
    bare = _LITERALS.sub(_blank, text[:MAX_SQL])
    if _SERVER_PROGRAM.search(bare):
        call.danger("lets a database run a program or write a file")
    for statement in bare.split(";"):
        if _LOSES.match(statement):
            call.danger("deletes data or tables of a database")
        elif _CHANGES_ALL.match(statement) or (
            re.match(r"\s*(delete|update)\b", statement, re.IGNORECASE)
            and _ALWAYS.fullmatch(statement)
        ):
            call.danger("changes all rows of a table")
        elif _GRANTS.match(statement):
            call.danger("grants all rights on a database")


def _blank(found: re.Match[str]) -> str:
    """Returns the replacement for a string or a comment. A string becomes an empty string. A
    comment becomes a space, because a comment separates words."""
    return " " if found[0].startswith(("--", "/*")) else "''"


def run_sql_client(call: Invocation) -> str:
    """Judges the statements that a client of an SQL database gets from options, files or its input.
    Returns what the client would print."""
    statements, files, valued = (row.split() for row in _SPEC[call.program])
    single = call.program in ("sqlite3", "duckdb", "sqlite", "influx")
    parsed = call.options([*statements, *files, *valued], single_dash=single)
    texts = parsed.values(*statements)
    if call.program in ("sqlite3", "sqlite", "duckdb"):
        texts += parsed.operands[1:]
    elif call.program == "bq":
        texts += [one for one in parsed.operands if " " in one]
        if parsed.operands[:1] == ["rm"]:
            call.danger("deletes data of a database")
    for file in parsed.values(*files):
        content = call.scope.content(file)
        if content is not None:
            texts.append(content)
    if call.stdin is not None:
        texts.append(call.stdin)
    for text in texts:
        if DOWNLOAD in text:
            call.danger("runs statements that come from the network")
        elif (
            not is_known(text) and not text.strip(ANYTHING + ONE_WORD + "\n") and text != call.stdin
        ):
            call.danger("runs statements that are known only when the command runs")
        else:
            judge_sql(text, call)
    return derived(call.stdin or "")


def run_mongo(call: Invocation) -> str:
    """Judges the code that is passed to the shell of MongoDB. Returns what the shell would
    print."""
    texts = [*call.options(names("eval u p host port f file")).values("eval"), call.stdin or ""]
    for text in texts:
        if _MONGO.search(text):
            call.danger("deletes data of a database")
    return ANYTHING


def run_redis(call: Invocation) -> str:
    """Judges the commands that the client of Redis gets as arguments or input. Returns what
    the client would print."""
    parsed = call.options(names("h p a n u s r i user pass"), permute=False)
    lines = [parsed.operands, *(line.split() for line in (call.stdin or "").split("\n"))]
    for words in lines:
        verb = words[0].upper() if words else ""
        if verb in _REDIS or (verb == "CONFIG" and [one.upper() for one in words[1:2]] == ["SET"]):
            call.danger("deletes all data or changes the settings of a database")
        elif (verb in ("DEL", "UNLINK") and any("*" in one for one in words)) or verb in (
            "EVAL",
            "SCRIPT",
        ):
            call.danger("deletes data of a database or runs a script in it")
        elif verb in ("DEL", "UNLINK") and any(one[:1] == ANYTHING for one in words[1:]):
            call.danger("deletes keys that are known only when the command runs")
    return ANYTHING
