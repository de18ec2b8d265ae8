"""Keeps one account connected: makes sure that no other process serves it, runs its adapter, and
restarts the adapter when the adapter fails or falls silent."""

import logging
import random
from collections.abc import Callable

import anyio

from hermes.control.access import accept_from_chat
from hermes.control.chat_files import accept_with_files
from hermes.control.credentials import CredentialInUse
from hermes.control.gateway import Gateway
from hermes.types.accounts import AccountState
from hermes.types.errors import AuthFailed, ClaimLost, Disconnected, HermesError, RateLimited
from hermes.types.messages import MessageEvent, Receipt
from hermes.types.platforms import (
    CanFetch,
    CanListCommands,
    Cursor,
    HasUserId,
    PlatformAdapter,
)
from hermes.types.protocols import Accept
from hermes.types.value import Value

log = logging.getLogger(__name__)

OPENING = "the connection is being opened"
_chance = random.Random()  # noqa: S311  # spreads reconnects, not a secret


class SupervisorTimes(Value):
    """The pauses and time limits of the supervisor, in seconds."""

    reconnect: tuple[float, ...] = (1.0, 2.0, 5.0, 15.0, 30.0, 60.0)
    """The pauses before the next connection: the first after one failure, the second after two
    failures in a row, and so on. The last pause is used for all further failures."""
    jitter: float = 0.2
    """Each pause is made longer or shorter at random, by at most this fraction of the pause, so
    that accounts do not reconnect at the same moment."""
    healthy: float = 60.0
    """If a connection has worked for this many seconds before it fails, the next pause is the first
    of `reconnect` again."""
    held: float = 1.0
    """The pause before the next attempt to take an account that another process serves."""
    refused: tuple[float, ...] = (1.0, 2.0, 5.0)
    """The pauses before the next attempt to use a credential that another gateway uses. The last
    pause is used for all further attempts."""
    accept: float = 600.0
    """Time limit for accepting one message, including the download of its files."""


USUAL_TIMES = SupervisorTimes()


async def serve(
    gateway: Gateway,
    adapter: PlatformAdapter,
    credential: str = "",
    times: SupervisorTimes = USUAL_TIMES,
) -> None:
    """Receives and sends the messages of the account until this call is cancelled. Returns early if
    the account's credential is invalid.

    `credential` is the hash that names the lock of the account's credential; empty for no lock.
    Failures of the adapter are logged and not raised, so that one account can't stop the others.
    """
    supervisor = _Supervisor(gateway, adapter, credential, times)
    try:
        await supervisor.keep_connected()
    finally:
        await gateway.leave_account(adapter)


class _Supervisor:
    def __init__(
        self, gateway: Gateway, adapter: PlatformAdapter, credential: str, times: SupervisorTimes
    ) -> None:
        self._gateway = gateway
        self._adapter = adapter
        self._account = adapter.account
        self._credential = credential
        self._times = times
        self._failures = 0
        """Number of consecutive connections that failed."""
        self._worked_for = 0.0
        """Seconds for which the last connection worked."""

    async def keep_connected(self) -> None:
        cursor: Cursor | None = None
        self._gateway.accounts.set(self._account, "connecting", OPENING)
        while True:
            self._worked_for = 0.0
            try:
                if cursor is None:
                    cursor = await self._hold()
                await self._connect(cursor)
                pause = self._failed("the adapter ended its connection", logging.WARNING)
            except AuthFailed as error:
                log.error("%s can't log in and is off until the restart: %s", self._account, error)
                self._gateway.accounts.set(self._account, "off", str(error))
                return
            except ClaimLost as lost:
                log.warning("%s", lost)
                cursor, pause = None, self._times.held
                await self._gateway.leave_account(self._adapter)
            except HermesError as error:
                passing = isinstance(error, Disconnected | RateLimited)
                level = logging.WARNING if passing else logging.ERROR
                pause = self._failed(str(error), level)
                if isinstance(error, RateLimited) and error.retry_after:
                    pause = error.retry_after
            except Exception as error:
                log.exception("the adapter of %s failed", self._account)
                reason = f"the adapter failed with {type(error).__name__}, as the log shows"
                pause = self._failed(reason, logging.ERROR)
            await anyio.sleep(pause)

    def _failed(self, reason: str, level: int) -> float:
        """Counts and logs the failure. Returns the pause before the next connection."""
        if self._worked_for >= self._times.healthy:
            self._failures = 0
        pause = _at(self._times.reconnect, self._failures)
        pause *= 1 + self._times.jitter * _chance.uniform(-1, 1)
        self._failures += 1
        log.log(level, "%s: %s; reconnecting in %.1f s", self._account, reason, pause)
        self._gateway.accounts.set(self._account, "connecting", reason)
        return pause

    async def _connect(self, cursor: Cursor) -> None:
        """Runs the adapter until it ends. Raises ClaimLost as soon as another process uses the
        account or its credential, and Disconnected if the adapter is silent for too long."""
        gateway, adapter = self._gateway, self._adapter
        run = AdapterRun(adapter.limits.silence, self._times.accept)
        ended: HermesError | None = None

        def ready() -> None:
            if run.note_sign_of_life():
                log.info("%s is connected", self._account)
                gateway.accounts.set(self._account, "connected")
                if isinstance(adapter, HasUserId):
                    platform = self._account.partition(".")[0]
                    gateway.accounts.recognize(platform, adapter.user_id)

        async def watch_account() -> None:
            nonlocal ended
            await gateway.account_lost(adapter)
            ended = ClaimLost(
                f"account {self._account} or its credential is now used by another process"
            )
            group.cancel_scope.cancel()

        async def watch_silence() -> None:
            nonlocal ended
            ended = Disconnected(await run.silence())
            group.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as group:
                group.start_soon(watch_account)
                group.start_soon(watch_silence)
                group.start_soon(self._show_commands)
                await adapter.run(run.watched(self._accept()), ready, cursor)
                group.cancel_scope.cancel()
        except BaseExceptionGroup as raised:
            # The other tasks raise nothing, so this is the error of the adapter.
            raise ended or raised.exceptions[0] from None
        finally:
            self._worked_for = run.connected_for
        if ended is not None:
            raise ended

    async def _show_commands(self) -> None:
        if isinstance(self._adapter, CanListCommands):
            try:
                await self._adapter.show_commands(self._gateway.commands)
            except HermesError as error:
                log.warning("the menu of commands of %s was not set: %s", self._account, error)

    def _accept(self) -> Accept:
        gateway, adapter = self._gateway, self._adapter
        accept: Accept = gateway.accept
        if isinstance(adapter, CanFetch):
            accept = accept_with_files(accept, gateway.admits, gateway.media, adapter.fetch)
        return accept_from_chat(accept, self._account)

    async def _hold(self) -> Cursor:
        """Waits until this process serves the account and is the only user of its credential.
        Returns the cursor: the position in the platform's events from which the adapter
        continues."""
        told, refusals = "", 0
        while True:
            state: AccountState = "connecting"
            pause, level = self._times.held, logging.ERROR
            try:
                cursor = await self._gateway.hold_account(self._adapter, self._credential)
                if cursor is not None:
                    self._gateway.accounts.set(self._account, "connecting", OPENING)
                    return cursor
                state, level, reason = "waiting", logging.WARNING, "another process serves it"
            except CredentialInUse as error:
                state, reason = "refused", str(error)
                pause = _at(self._times.refused, refusals)
                refusals += 1
            except HermesError as error:
                reason = str(error)
            self._gateway.accounts.set(self._account, state, reason)
            if reason != told:
                told = reason
                log.log(level, "%s is not served yet: %s", self._account, reason)
            await anyio.sleep(pause)


class AdapterRun:
    """One run of an adapter: whether it has connected, and when it last showed a sign of life."""

    def __init__(
        self, silence: float, accept: float, clock: Callable[[], float] = anyio.current_time
    ) -> None:
        """`silence` is the longest time between two signs of life. `accept` is the time limit for
        accepting a message. Both are in seconds."""
        self._silence = silence
        self._accept_seconds = accept
        self._clock = clock
        self._last_sign = clock()
        self._connected_at: float | None = None
        self._accepting = 0

    @property
    def connected_for(self) -> float:
        """Seconds from the first to the last answer of the platform on this connection."""
        return 0.0 if self._connected_at is None else self._last_sign - self._connected_at

    def note_sign_of_life(self) -> bool:
        """Notes that the platform has answered. Returns whether this was the first answer."""
        self._last_sign = self._clock()
        first = self._connected_at is None
        if first:
            self._connected_at = self._last_sign
        return first

    def watched(self, accept: Accept) -> Accept:
        """Wraps `accept`. Each message counts as a sign of life. While a message is being accepted,
        the time limit for accepting it replaces the limit on silence."""

        async def accept_and_note(event: MessageEvent) -> Receipt:
            self._accepting += 1
            self._last_sign = self._clock()
            try:
                return await accept(event)
            finally:
                self._accepting -= 1
                self._last_sign = self._clock()

        return accept_and_note

    async def silence(self) -> str:
        """Waits until the adapter has been silent for too long, or a message was not accepted in
        time. Returns the reason in words."""
        while True:
            limit = self._accept_seconds if self._accepting else self._silence
            left = self._last_sign + limit - self._clock()
            if left <= 0 and self._accepting:
                return f"a message was not accepted within {limit:g} s"
            if left <= 0:
                return f"nothing was heard from the platform for {limit:g} s"
            # While a message is being accepted, a longer limit applies. As soon as it is accepted,
            # the limit on silence applies again, so the sleep must not be longer than that limit.
            await anyio.sleep(min(left, self._silence))


def _at(pauses: tuple[float, ...], number: int) -> float:
    return pauses[min(number, len(pauses) - 1)]
