"""The inspection of an agent checks its settings and shows its prompt."""

from pathlib import Path

import pytest

from hermes.app.inspection import check, new_prompt
from hermes.settings import load
from hermes.types.errors import ConfigError
from hermes.types.messages import Origin


def written(home: Path, text: str) -> Path:
    home.mkdir()
    (home / "config.yaml").write_text(text)
    return home


async def test_a_check_does_not_change_the_home(tmp_path: Path) -> None:
    home = written(tmp_path / "home", "agent: {toolsets: [safe]}\n")
    await check(load(home, {}))
    assert [path.name for path in home.iterdir()] == ["config.yaml"]


@pytest.mark.parametrize(
    "text", ["agent: {toolsets: [nonsense]}\n", "auxiliary: {provider: nonsense}\n"]
)
async def test_a_check_finds_errors_that_would_stop_the_agent_from_working(
    tmp_path: Path, text: str
) -> None:
    home = written(tmp_path / "home", text)
    with pytest.raises(ConfigError, match="nonsense"):
        await check(load(home, {}))


async def test_a_check_finds_a_shared_folder_that_is_missing(tmp_path: Path) -> None:
    home, missing = tmp_path / "home", tmp_path / "missing"
    home.mkdir(mode=0o700)
    with pytest.raises(ConfigError, match="there is no folder"):
        await check(load(home, {"HERMES_STORE_SHARED_FOLDER": str(missing)}))
    assert not missing.exists()


async def test_the_prompt_of_a_platform_names_its_tools(tmp_path: Path) -> None:
    text = "model: {default: m, base_url: 'http://127.0.0.1:9/v1'}\n"
    settings = load(written(tmp_path / "home", text), {})
    prompt = await new_prompt(settings, "telegram", Origin())
    assert {"identity", "place"} <= {part.name for part in prompt.parts}
    assert "telegram" in prompt.text.lower()
    assert prompt.tools > 1000
