"""SQL statements and other database commands are judged."""

import pytest

from hermes.core.danger.detector import judge


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ('psql -c "SELECT 1"', "run"),
        ('psql -c "DROP TABLE a"', "ask"),
        ("psql -c \"SELECT 'DROP TABLE a'\"", "run"),
        ('psql -c "-- DROP TABLE a"', "run"),
        ('psql -c "DELETE FROM a"', "ask"),
        ('psql -c "DELETE FROM a WHERE b = 1"', "run"),
        ('psql -c "DELETE FROM a WHERE 1=1"', "ask"),
        ('psql -c "UPDATE a SET b = 1"', "ask"),
        ('psql -c "ALTER TABLE a DROP COLUMN b"', "ask"),
        ('psql -c "GRANT ALL ON a TO b"', "ask"),
        ("psql -c \"COPY a TO PROGRAM 'x'\"", "ask"),
        ('psql -c "\\! rm -r a"', "ask"),
        ('psql -c "$x"', "ask"),
        ("psql -f f", "run"),
        ('echo "DROP TABLE a" > f; psql -f f', "ask"),
        ('psql <<< "TRUNCATE a"', "ask"),
        ("pg_dump | psql", "run"),
        ('mysql db -e "DROP DATABASE a"', "ask"),
        ('sqlite3 a.db "DROP TABLE a"', "ask"),
        ('sqlite3 a.db ".shell rm -r a"', "ask"),
        ("sqlite3 a.db .tables", "run"),
        ('bq query "DROP TABLE a"', "ask"),
        ("bq rm a", "ask"),
    ],
)
def test_statements_that_lose_data_need_approval(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("redis-cli GET a", "run"),
        ("redis-cli flushall", "ask"),
        ("redis-cli CONFIG GET a", "run"),
        ("redis-cli CONFIG SET a b", "ask"),
        ('redis-cli DEL "*"', "ask"),
        ("redis-cli DEL $x", "ask"),
        ("redis-cli DEL a", "run"),
        ("echo FLUSHDB | redis-cli", "ask"),
        ('mongosh --eval "db.a.find()"', "run"),
        ('mongosh --eval "db.a.drop()"', "ask"),
        ('mongo <<< "db.dropDatabase()"', "ask"),
    ],
)
def test_commands_of_other_databases_are_judged(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome


def test_long_statements_need_approval() -> None:
    assert judge(f"psql -c '{'x' * 60_000}'").outcome == "ask"
