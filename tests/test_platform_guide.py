"""The code of the guide for platforms passes the contract of adapters, and works as a plugin."""

import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import anyio
import pytest

from hermes.testing.model import FakeModel
from hermes.testing.running import until
from hermes.testing.scripted import Plan

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guides" / "write-a-platform.md"
CONTRACT_SECONDS = 120
ANSWER_SECONDS = 30


def code(text: str) -> str:
    """Returns the Python code of a page."""
    return "\n\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S))


def saved(folder: Path) -> str:
    """Saves the code of the guide in the two files that the guide names. Returns the code of the
    module."""
    module, test = map(code, GUIDE.read_text().split("## Test it"))
    (folder / "hermes_ntfy.py").write_text(module)
    (folder / "test_hermes_ntfy.py").write_text(test)
    return module


def environ(folder: Path) -> dict[str, str]:
    """Returns environment variables with which a process can import the code in the folder."""
    return {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))}


def test_the_platform_of_the_guide_is_short(tmp_path: Path) -> None:
    assert len(saved(tmp_path).splitlines()) <= 200


def test_the_platform_of_the_guide_passes_the_contract_of_adapters(tmp_path: Path) -> None:
    saved(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_hermes_ntfy.py"],
        cwd=tmp_path,
        env=environ(tmp_path),
        capture_output=True,
        text=True,
        timeout=CONTRACT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 15
    assert "skipped" not in done.stdout


@pytest.mark.slow
async def test_the_platform_of_the_guide_answers_when_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(tmp_path)
    info = tmp_path / "hermes_ntfy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hermes-ntfy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[hermes.plugins]\nntfy = hermes_ntfy\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    guide = import_module("test_hermes_ntfy")
    async with FakeModel(Plan(text="Pancakes.")) as model, guide.TestNtfy().platform() as ntfy:
        home = tmp_path / "home"
        home.mkdir(mode=0o700)
        (home / ".env").write_text("NTFY_TOPIC=kitchen\nNTFY_ALLOWED_USERS=kitchen\n")
        config = {
            "model": {"default": "m", "base_url": model.base_url},
            "platforms": {"ntfy": {"server": ntfy.server}},
            "api_server": {"port": 0},
        }
        (home / "config.yaml").write_text(json.dumps(config))
        ntfy.says("What can I cook?")
        async with await anyio.open_process(
            [sys.executable, "-m", "hermes", "gateway", "run"],
            env={**environ(tmp_path), "HERMES_HOME": str(home)},
            stdout=subprocess.DEVNULL,
        ) as process:
            await until(lambda: ntfy.shown() == ["Pancakes."], ANSWER_SECONDS)
            process.kill()
