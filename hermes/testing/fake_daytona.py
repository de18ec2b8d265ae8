"""A fake of the part of Daytona's SDK that the `daytona` backend uses. The sandboxes run their
programs in folders of this machine. The fake refuses the same calls as Daytona:

    daytona = FakeDaytona(tmp_path)
    provider = DaytonaProvider(options, lambda: daytona.module)
"""

import shlex
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from hermes.testing.cloud_signatures import errors_of, signature_of
from hermes.testing.remote_host import RemoteHost

MODULE_CLASSES = (
    "CreateSandboxFromImageParams",
    "DaytonaConfig",
    "ListSandboxesQuery",
    "Resources",
)


class FakeDaytona:
    """A fake account at Daytona, and the module that replaces the SDK in tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = "dtn_1"
        self.failure = ""
        """The name of the error that the next calls of the SDK raise; empty if they raise none."""
        self.lost_answer = ""
        """The name of the error that the SDK raises after it has run the next program, instead of
        returning the program's output; empty if the SDK raises no error."""
        self.created: list[Any] = []
        """The parameters of each created sandbox."""
        self.clients = 0
        """Number of open clients."""
        self.errors = SimpleNamespace(**errors_of("daytona"))
        self.sandboxes: dict[str, _Sandbox] = {}
        self.module = ModuleType("daytona")
        parts = {name: self._made(name) for name in MODULE_CLASSES}
        parts |= {"AsyncDaytona": self._client, **vars(self.errors)}
        self.module.__dict__.update(parts)

    def stop_all(self) -> None:
        """Stops all sandboxes, as Daytona does when they are idle."""
        for one in self.sandboxes.values():
            one.halt()

    def answer(self, output: bytes) -> bytes:
        """Returns `output`, the output of a program. If `lost_answer` names an error, raises this
        error instead."""
        lost, self.lost_answer = self.lost_answer, ""
        if lost:
            raise getattr(self.errors, lost)("the connection was lost")
        return output

    @property
    def running(self) -> list[str]:
        return [name for name, one in self.sandboxes.items() if one.state == "started"]

    @property
    def kept(self) -> list[str]:
        return list(self.sandboxes)

    def call(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a fake of the SDK function `name`. The fake checks the arguments of each call,
        and then calls `function`."""
        signature = signature_of("daytona", name)

        def checked(*args: Any, **kwargs: Any) -> Any:
            signature.bind(None, *args, **kwargs)
            if self.failure:
                raise getattr(self.errors, self.failure)("the test makes this call fail")
            return function(*args, **kwargs)

        return checked

    def _made(self, name: str) -> Callable[..., Any]:
        """Returns a fake of the SDK class `name`. Its objects only store their arguments."""
        signature = signature_of("daytona", name)

        def make(**fields: Any) -> Any:
            signature.bind(**fields)
            return SimpleNamespace(**fields)

        return make

    def _client(self, config: Any) -> Any:
        signature_of("daytona", "AsyncDaytona").bind(config)
        if not config.api_key:
            raise self.errors.DaytonaAuthenticationError("Authentication credentials not found.")
        self.clients += 1
        return SimpleNamespace(
            close=self.call("AsyncDaytona.close", self._close),
            create=self._keyed(config, self.call("AsyncDaytona.create", self._create)),
            get=self._keyed(config, self.call("AsyncDaytona.get", self._get)),
            list=self._keyed(config, self.call("AsyncDaytona.list", self._list)),
        )

    def _keyed(self, config: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if config.api_key != self.key:
                raise self.errors.DaytonaAuthenticationError("Invalid credentials")
            return function(*args, **kwargs)

        return call

    async def _close(self) -> None:
        self.clients -= 1

    async def _create(self, params: Any, *, timeout: float) -> "_Sandbox":
        assert timeout > 0
        if params.name in self.sandboxes:
            raise self.errors.DaytonaConflictError(f"Sandbox {params.name} already exists")
        if params.network_block_all and params.domain_allow_list:
            raise self.errors.DaytonaBadRequestError("networkBlockAll excludes domainAllowList")
        self.created.append(params)
        host = RemoteHost(self.folder / f"host-{len(self.created)}")
        sandbox = _Sandbox(self, params.name, params.labels, host)
        self.sandboxes[params.name] = sandbox
        return sandbox

    async def _get(self, sandbox_id_or_name: str) -> "_Sandbox":
        found = self.sandboxes.get(sandbox_id_or_name)
        if found is None:
            raise self.errors.DaytonaNotFoundError(f"Sandbox {sandbox_id_or_name} not found")
        return found

    async def _list(self, query: Any) -> AsyncIterator["_Sandbox"]:
        for one in list(self.sandboxes.values()):
            if query.labels.items() <= one.labels.items():
                yield one


class _Sandbox:
    """A sandbox, which keeps its files while it is stopped."""

    def __init__(
        self, daytona: FakeDaytona, name: str, labels: dict[str, str], host: RemoteHost
    ) -> None:
        self.name = name
        self.labels = labels
        self.state = "started"
        self._daytona = daytona
        self._host = host
        call = daytona.call
        self.start = call("AsyncSandbox.start", self._start)
        self.stop = call("AsyncSandbox.stop", self._stop)
        self.delete = call("AsyncSandbox.delete", self._delete)
        self.wait_for_sandbox_stop = call("AsyncSandbox.wait_for_sandbox_stop", self._stopped)
        upload = call("_async.filesystem.AsyncFileSystem.upload_file", self._upload)
        self.fs = SimpleNamespace(upload_file=upload)
        execute = call("_async.process.AsyncProcess.exec", self._exec)
        self.process = SimpleNamespace(exec=execute)

    def halt(self) -> None:
        self.state = "stopped"
        self._host.stop()

    async def _start(self, timeout: float) -> None:
        if self.state != "stopped":
            raise self._daytona.errors.DaytonaConflictError(f"Sandbox is {self.state}")
        self.state = "started"

    async def _stop(self, timeout: float) -> None:
        self._check_started()
        self.halt()

    async def _stopped(self, timeout: float) -> None:
        assert self.state == "stopping"
        self.halt()

    async def _delete(self, timeout: float) -> None:
        self.halt()
        del self._daytona.sandboxes[self.name]

    async def _upload(self, src: bytes, dst: str, timeout: int) -> None:
        self._check_started()
        assert timeout == int(timeout)
        assert Path(dst).is_absolute()
        (self._host.home / Path(dst).name).write_bytes(src)

    async def _exec(self, command: str, timeout: int) -> Any:
        self._check_started()
        assert timeout == int(timeout)
        # The command reads its input from a file of the sandbox. On this machine, the file is in
        # the folder of the fake host, so the path in the command is not used.
        program, _, rest = command.rpartition(" < ")
        path = rest.partition(";")[0]
        assert rest == f"{path}; rm -f {path}"
        file = self._host.home / Path(path).name
        output = await self._host.run(shlex.split(program), file.read_bytes())
        file.unlink()
        return SimpleNamespace(result=self._daytona.answer(output).decode(), exit_code=0)

    def _check_started(self) -> None:
        if self.state != "started":
            raise self._daytona.errors.DaytonaBadRequestError(f"Sandbox is {self.state}")
