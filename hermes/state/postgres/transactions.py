"""Runs a transaction on a connection, and looks up the outcome of a commit that got no answer."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import psycopg

from hermes.state.postgres.channel import Channel, StatementReply
from hermes.state.postgres.errors import ConnectionLost, translated_error
from hermes.state.postgres.sql import PreparedSql, prepared
from hermes.types.errors import HermesError, StoreUnavailable
from hermes.types.store import Work

T = TypeVar("T")


def _own(text: str, *, rows: bool = False) -> PreparedSql:
    return PreparedSql(text=text.encode(), returns_rows=rows, writes=False)


_BEGIN = _own("begin isolation level read committed")
_BEGIN_READING = _own("begin isolation level repeatable read read only")
_COMMIT = _own("commit")
_ROLLBACK = _own("rollback")
_NUMBER = _own(
    "select pg_current_xact_id()::text, extract(epoch from clock_timestamp())::double precision",
    rows=True,
)
_NOTIFY = _own("select pg_notify($1, $2)")
_STATUS = _own(
    # After a crash, the server reuses the numbers of transactions that were not written to disk.
    # The checkpoint at the end of the recovery stores the first reused number as `next_xid`. If a
    # transaction ran before the recovery, and its number is not lower than `next_xid`, the
    # transaction was lost.
    "select case when (pg_postmaster_start_time() > to_timestamp($2)"
    " or c.checkpoint_time > to_timestamp($2))"
    " and (split_part(c.next_xid, ':', 1)::bigint << 32) + split_part(c.next_xid, ':', 2)::bigint"
    " <= $1::text::bigint then 'aborted' else pg_xact_status($1::text::xid8) end"
    " from pg_control_checkpoint() c",
    rows=True,
)


class CommitDoubtful(HermesError):
    """The connection was lost during a commit, so it is unknown whether the transaction was
    committed."""

    def __init__(self, number: int, at: float, result: object) -> None:
        super().__init__("the connection to the database was lost during a commit")
        self.number = number
        """The number that the database has given the transaction. The outcome can be looked up by
        this number."""
        self.at = at
        """A time during the transaction, by the clock of the database. It shows whether the server
        was restarted after the transaction."""
        self.result = result
        """The transaction's result. It is valid only if the transaction was committed."""


async def commit(channel: Channel, transaction: Callable[[], Work[T]]) -> tuple[T, int | None]:
    """Runs and commits the transaction. Returns its result and its number. The number is None if
    the transaction has written nothing.

    Raises CommitDoubtful if the outcome is unknown. Every other error means that nothing was
    changed.
    """
    try:
        channel.send(_BEGIN)
        result, number = await _drive(channel, transaction())
        if number is not None and number.result is None:
            await channel.settle()
        channel.send(_COMMIT)
        channel.synchronize()
    except BaseException as error:
        await _roll_back(channel)
        if isinstance(error, psycopg.Error):
            raise translated_error(error) from error
        raise
    written, at = None, 0.0
    if number is not None:
        ((text, at),) = number.rows()
        written = int(text)
    try:
        await channel.settle()
    except ConnectionLost:
        if written is None:
            raise
        raise CommitDoubtful(written, at, result) from None
    except psycopg.Error as error:
        if channel.lost is not None and written is not None:
            raise CommitDoubtful(written, at, result) from error
        await _roll_back(channel)
        raise translated_error(error) from error
    return result, written


async def read(channel: Channel, transaction: Callable[[], Work[T]]) -> T:
    """Runs a transaction that only reads, on one snapshot of the database, and returns its
    result."""
    try:
        channel.send(_BEGIN_READING)
        result, _ = await _drive(channel, transaction())
        channel.send(_COMMIT)
        channel.synchronize()
        await channel.settle()
    except BaseException as error:
        await _roll_back(channel)
        if isinstance(error, psycopg.Error):
            raise translated_error(error, reading=True) from error
        raise
    return result


async def outcome_of(channel: Channel, number: int, at: float) -> str | None:
    """Returns the state of the transaction: `committed`, `aborted` or `in progress`. Returns None
    if the server no longer knows the number."""
    try:
        reply = channel.send(_STATUS, (number, at))
        channel.synchronize()
        await channel.settle()
    except psycopg.Error as error:
        raise StoreUnavailable(f"the outcome of a commit can't be looked up ({error})") from error
    status: str | None = reply.rows()[0][0]
    return status


async def notify(channel: Channel, name: str, payloads: Sequence[str]) -> None:
    """Sends notifications, in a transaction of their own."""
    try:
        for payload in payloads:
            channel.send(_NOTIFY, (name, payload))
        channel.synchronize()
        await channel.settle()
    except psycopg.Error as error:
        raise StoreUnavailable(f"a notification can't be sent ({error})") from error


async def _drive(channel: Channel, work: Work[T]) -> tuple[T, StatementReply | None]:
    """Runs the generator's statements. Returns the result of the generator, and the reply with the
    transaction's number (None if nothing was written).

    This function does not wait for the results of statements that return no rows. If such a
    statement fails, a later `settle` raises the error.
    """
    number: StatementReply | None = None
    try:
        sql, parameters = next(work)
        while True:
            statement = prepared(sql)
            reply = channel.send(statement, parameters)
            if statement.writes and number is None:
                # The number of the transaction is requested together with the first write, to save
                # a round trip.
                number = channel.send(_NUMBER)
            if statement.returns_rows:
                await channel.settle()
                sql, parameters = work.send(reply.rows())
            else:
                sql, parameters = work.send([])
    except StopIteration as end:
        result: T = end.value
        return result, number
    finally:
        work.close()


async def _roll_back(channel: Channel) -> None:
    """Rolls the transaction back, so that the connection can be used again. If that fails, the
    connection is lost."""
    if channel.lost is not None:
        return
    try:
        channel.synchronize()
        channel.send(_ROLLBACK)
        channel.synchronize()
        await channel.drain()
    except ConnectionLost:
        pass
