"""A fake of the part of Modal's SDK that the `modal` backend uses. The sandboxes run their programs
in folders of this machine. The fake refuses the same calls as Modal:

    modal = FakeModal(tmp_path)
    provider = ModalProvider(options, lambda: modal.module)
"""

import functools
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from hermes.testing.cloud_signatures import errors_of, is_async, signature_of
from hermes.testing.remote_host import RemoteHost

MODAL_NAME_LENGTH = 64
MODAL_ARGUMENTS = 65_536
LONGEST_LIFE = 86_400


class FakeModal:
    """A fake account at Modal, and the module that replaces the SDK in tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.keys = ("ak-1", "as-1")
        self.failure = ""
        """The name of the error that the next calls of the SDK raise; empty if they raise none."""
        self.lost_answer = ""
        """The name of the error that the SDK raises after it has run the next program, instead of
        returning the program's output; empty if the SDK raises no error."""
        self.created: list[dict[str, Any]] = []
        """The arguments with which each sandbox was created."""
        self.errors = SimpleNamespace(**errors_of("modal"))
        self._apps: set[str] = set()
        self._sandboxes: dict[str, _Sandbox] = {}
        self._volumes: dict[str, _Volume] = {}
        self.module = self._module()

    def stop_all(self) -> None:
        """Ends all sandboxes, as Modal does when their time is up."""
        for one in self._sandboxes.values():
            one.end()

    def answer(self, output: bytes) -> bytes:
        """Returns the output of a program. If `lost_answer` names an error, raises this error
        instead, once."""
        lost, self.lost_answer = self.lost_answer, ""
        if lost:
            raise getattr(self.errors, lost)("the connection was lost")
        return output

    @property
    def running(self) -> list[str]:
        return [name for name, one in self._sandboxes.items() if not one.ended]

    @property
    def kept(self) -> list[str]:
        return list(self._volumes)

    def call(self, name: str, function: Callable[..., Any]) -> Any:
        """Returns a fake of the SDK function `name`. The fake checks the arguments of each call,
        and then calls `function`."""
        signature = signature_of("modal", name)
        own = [one for one in signature.parameters if one in ("self", "cls")]

        def check(*args: Any, **kwargs: Any) -> None:
            signature.bind(*(None for _ in own), *args, **kwargs)
            if self.failure:
                raise getattr(self.errors, self.failure)("the test makes this call fail")

        @functools.wraps(function)
        async def aio(*args: Any, **kwargs: Any) -> Any:
            check(*args, **kwargs)
            return await function(*args, **kwargs)

        @functools.wraps(function)
        def plain(*args: Any, **kwargs: Any) -> Any:
            check(*args, **kwargs)
            return function(*args, **kwargs)

        # The blocking form of an asynchronous function would stop the event loop.
        return SimpleNamespace(aio=aio) if is_async(name) else plain

    def _module(self) -> ModuleType:
        module = ModuleType("modal")
        call = self.call
        parts = {
            "exception": self.errors,
            "App": SimpleNamespace(lookup=call("App.lookup", self._app)),
            "Client": SimpleNamespace(
                from_credentials=call("Client.from_credentials", self._client)
            ),
            "Image": SimpleNamespace(from_registry=call("Image.from_registry", _Image)),
            "Sandbox": SimpleNamespace(
                create=call("Sandbox.create", self._create),
                from_name=call("Sandbox.from_name", self._sandbox),
            ),
            "Volume": SimpleNamespace(
                from_name=call("Volume.from_name", self._volume),
                objects=SimpleNamespace(
                    delete=call("Volume.objects.delete", self._delete_volume),
                    list=call("Volume.objects.list", self._list_volumes),
                ),
            ),
        }
        module.__dict__.update(parts)
        return module

    async def _client(self, token_id: str, token_secret: str) -> Any:
        if (token_id, token_secret) != self.keys:
            raise self.errors.AuthError("Token ID is invalid")
        return SimpleNamespace(hello=self.call("Client.hello", _nothing))

    async def _app(self, name: str, *, client: Any, create_if_missing: bool = False) -> Any:
        assert client
        if create_if_missing:
            self._apps.add(name)
        if name not in self._apps:
            raise self.errors.NotFoundError(f"App {name!r} not found")
        return SimpleNamespace(name=name)

    def _volume(self, name: str, *, create_if_missing: bool, version: int, client: Any) -> Any:
        assert (client, create_if_missing, version) == (client, True, 2)
        self._check_name(name)
        if name not in self._volumes:
            self._volumes[name] = _Volume(name, self.folder / "volumes" / name)
        return self._volumes[name]

    async def _delete_volume(self, name: str, *, allow_missing: bool, client: Any) -> None:
        assert client
        assert name not in self.running, "a volume in use was deleted"
        if self._volumes.pop(name, None) is None and not allow_missing:
            raise self.errors.NotFoundError(f"Volume {name!r} not found")

    async def _list_volumes(self, *, client: Any) -> list["_Volume"]:
        assert client
        return list(self._volumes.values())

    async def _create(self, *args: str, **options: Any) -> "_Sandbox":
        name = options["name"]
        self._check_name(name)
        if name in self.running:
            raise self.errors.AlreadyExistsError(f"Sandbox {name!r} already exists")
        if not 0 < options["timeout"] <= LONGEST_LIFE:
            raise self.errors.InvalidError("timeout must be at most 24 hours")
        if options["block_network"] and options["outbound_domain_allowlist"]:
            raise self.errors.InvalidError("block_network excludes an allowlist")
        assert args == ("sleep", "infinity")
        assert options["app"].name in self._apps
        assert isinstance(options["image"], _Image)
        self.created.append(options)
        host = RemoteHost(self.folder / f"host-{len(self.created)}")
        sandbox = _Sandbox(self, host, options["volumes"])
        self._sandboxes[name] = sandbox
        return sandbox

    async def _sandbox(self, app_name: str, name: str, *, client: Any) -> "_Sandbox":
        assert client
        found = self._sandboxes.get(name)
        if app_name not in self._apps or found is None or found.ended:
            raise self.errors.NotFoundError(f"Sandbox {name!r} not found")
        return found

    def _check_name(self, name: str) -> None:
        if not re.fullmatch(r"[\w.-]+", name) or len(name) > MODAL_NAME_LENGTH:
            raise self.errors.InvalidError(f"Invalid name: {name!r}")


class _Image:
    def __init__(self, tag: str) -> None:
        self.tag = tag


class _Volume:
    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        folder.mkdir(parents=True)


class _Sandbox:
    """A running sandbox. A volume is mounted by moving its folder into the sandbox."""

    def __init__(self, modal: FakeModal, host: RemoteHost, volumes: dict[str, _Volume]) -> None:
        self._modal = modal
        self._host = host
        self._mounts = {Path(path): volume for path, volume in volumes.items()}
        self.ended = False
        for path, volume in self._mounts.items():
            assert path.is_absolute()
            path.parent.mkdir(parents=True, exist_ok=True)
            volume.folder.rename(path)
        self.exec = modal.call("Sandbox.exec", self._exec)
        self.poll = modal.call("Sandbox.poll", self._poll)
        self.terminate = modal.call("Sandbox.terminate", self._terminate)

    def end(self) -> None:
        if not self.ended:
            self.ended = True
            self._host.stop()
            for path, volume in self._mounts.items():
                path.rename(volume.folder)

    async def _poll(self) -> int | None:
        return 137 if self.ended else None

    async def _terminate(self, *, wait: bool = False) -> int:
        assert wait, "the files are saved when the sandbox has ended"
        self.end()
        return 137

    async def _exec(self, *args: str, text: bool, timeout: int) -> "_Process":
        errors = self._modal.errors
        if self.ended:
            raise errors.ConflictError("Sandbox already finished")
        if sum(map(len, args)) > MODAL_ARGUMENTS:
            raise errors.InvalidError("the arguments are too long")
        assert not text, "the input and output are bytes"
        assert timeout == int(timeout)
        return _Process(self._modal, self._host, args)


class _Process:
    def __init__(self, modal: FakeModal, host: RemoteHost, arguments: tuple[str, ...]) -> None:
        self._modal = modal
        self._host = host
        self._arguments = arguments
        self._waiting = b""
        self._input = b""
        self._closed = False
        call = modal.call
        self.stdin = SimpleNamespace(
            write=call("io_streams.StreamWriter.write", self._write),
            write_eof=call("io_streams.StreamWriter.write_eof", self._close),
            drain=call("io_streams.StreamWriter.drain", self._drain),
        )
        self.stdout = SimpleNamespace(read=call("io_streams.StreamReader.read", self._run))
        self.stderr = SimpleNamespace(read=call("io_streams.StreamReader.read", self._problem))
        self.wait = call("container_process.ContainerProcess.wait", self._run)

    def _write(self, data: bytes) -> None:
        assert not self._closed
        self._waiting += data

    def _close(self) -> None:
        self._closed = True

    async def _drain(self) -> None:
        self._input += self._waiting
        self._waiting = b""

    async def _run(self) -> bytes:
        if not self._closed:
            raise AssertionError("the program waits for the end of its input")
        output = b""
        if self._arguments:
            arguments, self._arguments = self._arguments, ()
            output = self._modal.answer(await self._host.run(arguments, self._input))
        return output

    async def _problem(self) -> bytes:
        return b""


async def _nothing() -> None:
    """Does nothing."""
