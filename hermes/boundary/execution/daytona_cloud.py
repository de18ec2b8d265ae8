"""The `daytona` backend: runs commands in remote sandboxes of Daytona, through Daytona's SDK."""

import contextlib
import importlib
import math
import shlex
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import anyio.to_thread

from hermes.boundary.execution.cloud import IDLE_SECONDS, CloudBackend, SandboxStopped
from hermes.boundary.execution.remote_calls import MachineUnreachable
from hermes.types.errors import ToolFailed
from hermes.types.execution import BackendManifest, BackendOptions
from hermes.types.identity import new_id

DAYTONA_NAME = "daytona"
LABEL = "hermes"
"""The name of the label that says to which home (data folder of Hermes) a sandbox belongs. The
names of all sandboxes of a home begin with the same prefix, which is the value of the label."""
BUILD_SECONDS = 300
"""Maximum number of seconds for the start of a sandbox, which includes the build of its image."""
GIBIBYTE = 1 << 30
SLOW_PARTS = ("AsyncDaytona", "CreateSandboxFromImageParams", "DaytonaError")
"""The parts of the SDK that take long to import."""
BROKEN = ("error", "build_failed")
GONE = ("destroyed", "destroying")


class DaytonaProvider:
    """Implements `CloudProvider`. Daytona keeps the whole file system of a stopped sandbox."""

    def __init__(self, options: BackendOptions, load: Callable[[], ModuleType]) -> None:
        """`load` imports the SDK, which is slow."""
        self._options = options
        self._load = load
        self._sdk: Any = None
        self._client: Any = None
        self._sandboxes: dict[str, Any] = {}
        """The sandboxes that were running when they were last used."""

    async def check(self) -> None:
        # Daytona checks the key in every request, so any request shows whether the key is valid.
        await self.names("none")

    async def start(self, name: str, workspace: str) -> None:
        sandbox = await self._find(name)
        with self._explained():
            if sandbox is None or sandbox.state in GONE:
                sandbox = await self._created(name)
            if sandbox.state in BROKEN:
                raise ToolFailed(
                    "The remote sandbox is broken: reset it with `hermes sandbox reset`, which"
                    " deletes its files."
                )
            if sandbox.state == "stopping":
                await sandbox.wait_for_sandbox_stop(timeout=BUILD_SECONDS)
            if sandbox.state != "started":
                await sandbox.start(timeout=BUILD_SECONDS)
        self._sandboxes[name] = sandbox

    async def running(self, name: str) -> bool:
        sandbox = await self._find(name)
        return sandbox is not None and sandbox.state == "started"

    async def execute(
        self, name: str, arguments: Sequence[str], data: bytes, seconds: float
    ) -> bytes:
        sandbox = self._sandboxes.get(name) or await self._find(name)
        if sandbox is None:
            raise SandboxStopped
        # The input goes through a file: the API can't send input to a program, and a command line
        # has a limited length and is logged.
        path = f"/tmp/.hermes-{new_id()}"  # noqa: S108  # in the remote sandbox
        command = f"{shlex.join(arguments)} < {path}; rm -f {path}"
        with self._explained():
            try:
                await sandbox.fs.upload_file(data, path, timeout=math.ceil(seconds))
            except self._sdk.DaytonaError:
                # Daytona does not document its answer to a request for a stopped sandbox, so the
                # state of the sandbox is checked.
                self._sandboxes.pop(name, None)
                if not await self.running(name):
                    raise SandboxStopped from None
                raise
            done = await sandbox.process.exec(command, timeout=math.ceil(seconds))
        output: str = done.result
        return output.encode()

    async def stop(self, name: str, workspace: str) -> None:
        sandbox = await self._find(name)
        self._sandboxes.pop(name, None)
        if sandbox is not None and sandbox.state == "started":
            with self._explained():
                await sandbox.stop(timeout=BUILD_SECONDS)

    async def delete(self, name: str) -> None:
        sandbox = await self._find(name)
        self._sandboxes.pop(name, None)
        if sandbox is not None and sandbox.state not in GONE:
            with self._explained():
                await sandbox.delete(timeout=BUILD_SECONDS)

    async def names(self, prefix: str) -> Sequence[str]:
        client = await self._connected()
        with self._explained():
            query = self._sdk.ListSandboxesQuery(labels={LABEL: prefix})
            return [one.name async for one in client.list(query)]

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _connected(self) -> Any:
        if self._client is None:
            account = self._options.daytona
            if self._sdk is None:
                self._sdk = await _loaded(self._load)
            if not account.key:
                raise ToolFailed(
                    "Daytona needs a key: set DAYTONA_API_KEY in the file .env in the home."
                )
            with self._explained():
                config = self._sdk.DaytonaConfig(api_key=account.key, api_url=account.url)
                self._client = self._sdk.AsyncDaytona(config)
        return self._client

    async def _find(self, name: str) -> Any:
        """Returns the sandbox; None if it does not exist."""
        client = await self._connected()
        with self._explained():
            try:
                return await client.get(name)
            except self._sdk.DaytonaNotFoundError:
                return None

    async def _created(self, name: str) -> Any:
        sdk, options = self._sdk, self._options
        network, limits = options.network, options.limits
        params = sdk.CreateSandboxFromImageParams(
            name=name,
            image=options.daytona.image,
            os_user="root",
            labels={LABEL: name.rpartition("-")[0]},
            resources=sdk.Resources(
                cpu=math.ceil(options.daytona.cpus),
                memory=math.ceil(limits.memory / GIBIBYTE) or None,
                disk=math.ceil(limits.workspace_bytes / GIBIBYTE) or None,
            ),
            auto_stop_interval=IDLE_SECONDS // 60,
            network_block_all=network.mode == "none",
            domain_allow_list=",".join(network.hosts) if network.mode == "hosts" else None,
        )
        try:
            return await self._client.create(params, timeout=BUILD_SECONDS)
        except sdk.DaytonaConflictError:
            # Another process has created the sandbox meanwhile.
            return await self._client.get(name)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Translates the errors of the SDK."""
        sdk = self._sdk
        try:
            yield
        except (sdk.DaytonaAuthenticationError, sdk.DaytonaForbiddenError) as error:
            raise ToolFailed(
                "Daytona refuses the key: check DAYTONA_API_KEY, or make a new key on"
                f" app.daytona.io ({error})."
            ) from error
        except sdk.DaytonaRateLimitError as error:
            raise ToolFailed(
                "The account at Daytona has reached a limit: wait a minute, reset sandboxes with"
                f" `hermes sandbox reset`, or raise the limit on app.daytona.io ({error})."
            ) from error
        except (
            sdk.DaytonaConnectionError,
            sdk.DaytonaTimeoutError,
            sdk.DaytonaBadGatewayError,
            sdk.DaytonaServiceUnavailableError,
            OSError,
        ) as error:
            raise MachineUnreachable(
                "Daytona can't be reached: check the network of this machine, and try again"
                f" ({error})."
            ) from error
        except sdk.DaytonaError as error:
            raise ToolFailed(
                f"Daytona has refused the request: {error}. The command was not run on the"
                " machine of Hermes instead."
            ) from error


async def _loaded(load: Callable[[], ModuleType]) -> ModuleType:
    try:
        return await anyio.to_thread.run_sync(load)
    except ModuleNotFoundError as error:
        raise ToolFailed(
            "The package daytona is missing: install it with"
            " `pip install 'hermes-gateway[daytona]'`."
        ) from error


def _make(options: BackendOptions) -> CloudBackend:
    return CloudBackend(DAYTONA_NAME, options, DaytonaProvider(options, _load))


def _load() -> ModuleType:
    sdk = importlib.import_module("daytona")
    # The package would import its parts when they are first used, which takes seconds. So they are
    # imported here, in a worker thread.
    for name in SLOW_PARTS:
        getattr(sdk, name)
    return sdk


DAYTONA_BACKEND = BackendManifest(name=DAYTONA_NAME, make=_make)
