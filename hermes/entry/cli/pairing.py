"""`hermes pairing`: shows, approves and revokes the access of people who were paired."""

import sys
import time
from datetime import datetime

import anyio
import click
import msgspec

from hermes import settings as configuration
from hermes.control import pairing as codes
from hermes.control.pairing import (
    PairedUser,
    PairingRequest,
    WrongCode,
    find_request,
    hash_code,
    parse_code,
)
from hermes.entry.cli.main import Commands, plainly
from hermes.entry.cli.platform_names import check_platform
from hermes.entry.cli.runtime import Runtime
from hermes.entry.output import confirm, say, say_json, say_line
from hermes.text.console import printable_line
from hermes.types.errors import HermesError
from hermes.types.people import Role


class NotPaired(HermesError):
    code = "not_paired"
    status = 404


@click.command(cls=Commands, default="list")
def pairing() -> None:
    """Admit people who ask to be paired. Without a command: `hermes pairing list`.

    PLATFORM is the name of a platform, such as telegram, or the name of another account of
    the platform, such as telegram.support.
    """


@pairing.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.pass_obj
@plainly
def list_(runtime: Runtime, as_json: bool) -> None:
    """List the people who wait for approval, and those who are paired."""

    async def read() -> tuple[list[PairingRequest], list[PairedUser]]:
        async with runtime.open_store(configuration.load()) as store:
            return await store.read(codes.listed, time.time())

    waiting, paired = anyio.run(read)
    if as_json:
        for state, found in (("waiting", waiting), ("paired", paired)):
            for one in found:
                fields = {"state": state, **msgspec.structs.asdict(one)}
                say_json(msgspec.json.encode(fields).decode())
        return
    for request in waiting:
        say_line(f"waiting  {_when(request.made_at)}  {request.described}")
    for user in paired:
        say_line(f"{user.role:<7}  {_when(user.granted_at)}  {user.described}")
    if not waiting and not paired:
        say("Nobody is paired, and nobody waits for approval.")


@pairing.command()
@click.argument("platform")
@click.argument("code")
@click.option("-y", "--yes", is_flag=True, help="Approve without asking first.")
@click.option("--json", "as_json", is_flag=True, help="Print the user as a JSON object.")
@click.pass_obj
@plainly
def approve(runtime: Runtime, platform: str, code: str, yes: bool, as_json: bool) -> None:
    """Pair the user who got CODE from Hermes. In a terminal, the command first asks you to
    confirm."""
    settings = configuration.load()
    account = _account(runtime, platform)
    digest = hash_code(account, parse_code(code) or code)

    async def find() -> PairingRequest:
        async with runtime.open_store(settings) as store:
            return await find_request(store, account, code)

    async def pair() -> Role | None:
        has_owner = bool(settings.access.owners)
        async with runtime.open_store(settings) as store:
            return await store.run(codes.approve, digest, account, time.time(), has_owner=has_owner)

    request = anyio.run(find)
    asked = sys.stdin.isatty() and not yes and not as_json
    if asked and not confirm(printable_line(f"Pair {request.described}?")):
        raise click.Abort
    role = anyio.run(pair)
    if role is None:
        raise WrongCode("the code has expired: the user can ask for a new one")
    if as_json:
        fields = {**msgspec.structs.asdict(request), "role": role.name.lower()}
        say_json(msgspec.json.encode(fields).decode())
        return
    say_line(f"paired as {role.name.lower()}: {request.described}")


@pairing.command()
@click.argument("platform")
@click.argument("user")
@click.option("--json", "as_json", is_flag=True, help="Print the user as a JSON object.")
@click.pass_obj
@plainly
def revoke(runtime: Runtime, platform: str, user: str, as_json: bool) -> None:
    """Take away the access of a paired user, or refuse a user who waits. USER is the user's id."""
    account = _account(runtime, platform)

    async def take() -> bool:
        async with runtime.open_store(configuration.load()) as store:
            return await store.run(codes.revoke, account, user)

    if not anyio.run(take):
        raise NotPaired(
            f"user {user!r} of {account} is not paired: `hermes pairing list` shows who is"
        )
    if as_json:
        say_json(msgspec.json.encode({"account": account, "user_id": user}).decode())
    else:
        say_line(f"user {user} of {account} is no longer paired")


def _account(runtime: Runtime, name: str) -> str:
    """Returns the name of the account. Raises UnknownPlatform if the platform of the account is not
    installed."""
    check_platform(runtime, name.partition(".")[0])
    return name


def _when(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M")
