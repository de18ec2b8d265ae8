"""Installs Hermes without extras into a new virtual environment, and measures the time, the number
of packages and the size."""

import asyncio
import sys
import time
from pathlib import Path

from benchmarks.sizes import Sizes
from benchmarks.stage import Stage

ROOT = Path(__file__).parents[1]
SECONDS = 300.0
TOOLS = {"pip", "setuptools", "wheel"}
"""The packages that every new environment contains. They are not counted."""


async def install(stage: Stage, sizes: Sizes) -> None:
    """Runs `pip install`. Measures its time, and the number and the size of the installed
    packages."""
    place = stage.folder / "venv"
    await _run(sys.executable, "-m", "venv", str(place))
    began = time.perf_counter()
    await _run(str(place / "bin" / "pip"), "install", "--quiet", "--no-cache-dir", str(ROOT))
    seconds = time.perf_counter() - began
    found = place.glob("lib/python*/site-packages/*.dist-info")
    packages = {one.name.partition("-")[0] for one in found} - TOOLS
    site = next(place.glob("lib/python*/site-packages"))
    own = [one for one in site.iterdir() if one.name.partition("-")[0] not in TOOLS]
    size = sum(_bytes(one) for one in own)
    stage.record.put("install.seconds", seconds)
    stage.record.put("install.packages", len(packages))
    stage.record.put("install.size", size / 2**20)


def _bytes(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(one.stat().st_size for one in path.rglob("*") if one.is_file())


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(SECONDS):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode:
        raise OSError(f"{' '.join(command)} failed: {out.decode(errors='replace')[-500:]}")
