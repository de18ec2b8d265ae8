"""Checks the credentials of the configured chat accounts for `hermes doctor`."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from hermes.types.checks import Check, CheckJob
from hermes.types.errors import AuthFailed, HermesError
from hermes.types.platforms import CanVerify, PlatformAdapter

LOGIN_SECONDS = 5.0
"""Seconds within which a platform must confirm the credentials."""


def account_jobs(adapters: Iterable[PlatformAdapter]) -> Iterator[CheckJob]:
    """Yields one job for each account. The job checks the credentials of the account, but does not
    connect the account."""
    for adapter in adapters:
        yield CheckJob(
            name=adapter.account,
            run=partial(check_account, adapter),
            seconds=LOGIN_SECONDS,
            late=f"the platform did not answer within {LOGIN_SECONDS:g} s",
            hint="check the network; a running gateway connects again by itself",
        )


async def check_account(adapter: PlatformAdapter) -> Sequence[Check]:
    name = adapter.account
    if not isinstance(adapter, CanVerify):
        text = "configured; the credentials of this platform can't be checked"
        return (Check(name=name, level="ok", text=text),)
    try:
        found = await adapter.verify()
    except AuthFailed as error:
        hint = f"set valid credentials for {name}, and restart the gateway"
        return (Check(name=name, level="error", text=str(error), hint=hint),)
    except HermesError as error:
        hint = "check the network and the address; a running gateway connects again by itself"
        return (Check(name=name, level="error", text=str(error), hint=hint),)
    return (Check(name=name, level="ok", text=found),)
