"""The `modal` backend: runs commands in remote sandboxes of Modal, through Modal's SDK."""

import contextlib
import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import anyio
import anyio.to_thread

from hermes.boundary.execution.cloud import (
    IDLE_SECONDS,
    LIFETIME_SECONDS,
    CloudBackend,
    SandboxStopped,
)
from hermes.boundary.execution.remote_calls import MachineUnreachable
from hermes.types.errors import ToolFailed
from hermes.types.execution import BackendManifest, BackendOptions

MODAL_NAME = "modal"
APP_NAME = "hermes"
"""The name of the app in Modal that all sandboxes belong to."""
VOLUME_VERSION = 2
"""The version of the volumes that are created at Modal. The changes in a volume of this version can
be committed with the command `sync`."""
INPUT_PIECE = 1_000_000
"""Maximum number of bytes of input that are sent at once."""
MODAL_CONNECT_SECONDS = 8.0
"""Maximum number of seconds for connecting to Modal."""
SYNC_SECONDS = 60.0
"""Maximum number of seconds for saving the files of a workspace."""
MEBIBYTE = 1 << 20


class ModalProvider:
    """Implements `CloudProvider`. The workspace of each sandbox is a volume of Modal with the name
    of the sandbox. So the workspace outlives the sandbox, which Modal ends after a day at the
    latest."""

    def __init__(self, options: BackendOptions, load: Callable[[], ModuleType]) -> None:
        """`load` imports the SDK, which is slow."""
        self._options = options
        self._load = load
        self._sdk: Any = None
        self._client: Any = None
        self._sandboxes: dict[str, Any] = {}
        """Maps the name of a sandbox to the SDK's object for it. Contains the sandboxes that were
        running when this process last used them."""

    async def check(self) -> None:
        client = await self._connected()
        with self._explained():
            await client.hello.aio()

    async def start(self, name: str, workspace: str) -> None:
        client = await self._connected()
        if await self._running(name) is not None:
            return
        with self._explained():
            sdk, options = self._sdk, self._options
            app = await sdk.App.lookup.aio(APP_NAME, client=client, create_if_missing=True)
            volume = sdk.Volume.from_name(
                name, create_if_missing=True, version=VOLUME_VERSION, client=client
            )
            hosts = list(options.network.hosts) if options.network.mode == "hosts" else None
            memory = options.limits.memory // MEBIBYTE
            # Another process may have created the sandbox meanwhile.
            with contextlib.suppress(sdk.exception.AlreadyExistsError):
                await sdk.Sandbox.create.aio(
                    "sleep",
                    "infinity",
                    app=app,
                    name=name,
                    image=sdk.Image.from_registry(options.modal.image),
                    timeout=LIFETIME_SECONDS,
                    idle_timeout=IDLE_SECONDS,
                    cpu=options.modal.cpus,
                    memory=(memory, memory) if memory else None,
                    block_network=options.network.mode == "none",
                    outbound_domain_allowlist=hosts,
                    volumes={workspace: volume},
                    client=client,
                )

    async def running(self, name: str) -> bool:
        await self._connected()
        return await self._running(name) is not None

    async def execute(
        self, name: str, arguments: Sequence[str], data: bytes, seconds: float
    ) -> bytes:
        await self._connected()
        sandbox = self._sandboxes.get(name) or await self._running(name)
        if sandbox is None:
            raise SandboxStopped
        errors = self._sdk.exception
        with self._explained():
            try:
                process = await sandbox.exec.aio(*arguments, text=False, timeout=math.ceil(seconds))
            except (
                errors.ConflictError,
                errors.NotFoundError,
                errors.SandboxTerminatedError,
                errors.SandboxTimeoutError,
            ) as error:
                self._sandboxes.pop(name, None)
                raise SandboxStopped from error
            for start in range(0, len(data), INPUT_PIECE):
                process.stdin.write(data[start : start + INPUT_PIECE])
                await process.stdin.drain.aio()
            process.stdin.write_eof()
            await process.stdin.drain.aio()
            output: bytes = await process.stdout.read.aio()
            # If a program can't be run, its output is empty and stderr contains the error.
            problem: bytes = b"" if output else await process.stderr.read.aio()
            await process.wait.aio()
        return output or problem

    async def stop(self, name: str, workspace: str) -> None:
        await self._connected()
        sandbox = await self._running(name)
        if sandbox is None:
            return
        await self.execute(name, ("sync", workspace), b"", SYNC_SECONDS)
        self._sandboxes.pop(name, None)
        with self._explained():
            await sandbox.terminate.aio(wait=True)

    async def delete(self, name: str) -> None:
        client = await self._connected()
        sandbox = await self._running(name)
        self._sandboxes.pop(name, None)
        with self._explained():
            if sandbox is not None:
                await sandbox.terminate.aio(wait=True)
            await self._sdk.Volume.objects.delete.aio(name, allow_missing=True, client=client)

    async def names(self, prefix: str) -> Sequence[str]:
        client = await self._connected()
        with self._explained():
            volumes = await self._sdk.Volume.objects.list.aio(client=client)
        return [one.name for one in volumes if one.name and one.name.startswith(prefix)]

    async def aclose(self) -> None:
        """Does nothing, because the SDK closes its connections itself."""

    async def _connected(self) -> Any:
        if self._client is None:
            account = self._options.modal
            if self._sdk is None:
                self._sdk = await _loaded(self._load)
            if not (account.key_id and account.key):
                raise ToolFailed(
                    "Modal needs a key: set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET in the file .env"
                    " in the home."
                )
            # The SDK itself tries for longer than `hermes doctor` waits.
            with self._explained(), anyio.fail_after(MODAL_CONNECT_SECONDS):
                connect = self._sdk.Client.from_credentials.aio
                self._client = await connect(account.key_id, account.key)
        return self._client

    async def _running(self, name: str) -> Any:
        """Returns the sandbox; None if it is not running."""
        with self._explained():
            try:
                sandbox = await self._sdk.Sandbox.from_name.aio(APP_NAME, name, client=self._client)
            except self._sdk.exception.NotFoundError:
                return None
            if await sandbox.poll.aio() is not None:
                return None
        self._sandboxes[name] = sandbox
        return sandbox

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Translates the errors of Modal's SDK into ours."""
        errors = self._sdk.exception
        try:
            yield
        except (errors.AuthError, errors.PermissionDeniedError) as error:
            raise ToolFailed(
                "Modal refuses the key: check MODAL_TOKEN_ID and MODAL_TOKEN_SECRET, or make a new"
                f" key on modal.com ({error})."
            ) from error
        except errors.ResourceExhaustedError as error:
            raise ToolFailed(
                "The account at Modal has reached a limit: reset sandboxes with `hermes sandbox"
                f" reset`, or raise the limit on modal.com ({error})."
            ) from error
        except (errors.ConnectionError, errors.ServiceError, errors.TimeoutError, OSError) as error:
            raise MachineUnreachable(
                "Modal can't be reached: check the network of this machine, and try again"
                f" ({error})."
            ) from error
        except errors.Error as error:
            raise ToolFailed(
                f"Modal has refused the request: {error}. The command was not run on the machine of"
                " Hermes instead."
            ) from error


async def _loaded(load: Callable[[], ModuleType]) -> ModuleType:
    try:
        return await anyio.to_thread.run_sync(load)
    except ModuleNotFoundError as error:
        raise ToolFailed(
            "The package modal is missing: install it with `pip install 'hermes-gateway[modal]'`."
        ) from error


def _make(options: BackendOptions) -> CloudBackend:
    load = partial(importlib.import_module, "modal")
    return CloudBackend(MODAL_NAME, options, ModalProvider(options, load))


MODAL_BACKEND = BackendManifest(name=MODAL_NAME, make=_make)
