"""Calls the command `docker` or `podman`."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import anyio

from hermes.types.errors import ToolFailed
from hermes.types.value import Value

ENGINES = ("docker", "podman")
ENGINE_SECONDS = 60.0
"""Maximum number of seconds for one call of the engine."""
ENGINE_ADVICE = (
    "Install Docker or Podman and make sure that this user may use it, or set terminal.backend to"
    " another backend."
)


class EngineAnswer(Value):
    """The result of one call of `docker` or `podman`."""

    code: int
    output: str
    error: str


class ContainerEngine:
    """The container engine of this machine. Hermes searches for the engine when the engine is first
    used."""

    def __init__(self, program: str, environment: Mapping[str, str]) -> None:
        """`program` is the name or the path of the engine; empty for the first engine that
        answers."""
        self.environment = environment
        self._wanted = program
        self._found: Path | None = None

    @property
    def program(self) -> str:
        """The path of the engine. Only available after `find` has found an engine."""
        assert self._found
        return str(self._found)

    @property
    def is_podman(self) -> bool:
        return self._found is not None and self._found.name == "podman"

    @property
    def rootless_podman(self) -> bool:
        """Whether the engine is podman without the rights of root. Such an engine maps the users of
        a container to other users of this machine."""
        return self.is_podman and os.geteuid() != 0

    async def find(self) -> str:
        """Searches for an engine that works. Returns an empty text if an engine works, and
        otherwise the reason why no engine works."""
        if self._found:
            return ""
        problems: list[str] = []
        for name in (self._wanted,) if self._wanted else ENGINES:
            path = shutil.which(name, path=self.environment.get("PATH"))
            if path is None:
                problems.append(f"{name} is not installed")
                continue
            answer = await self._call(path, "version", "--format", "{{.Server.Version}}")
            if answer.code == 0:
                self._found = Path(path)
                return ""
            problems.append(f"{name} does not work: {answer.error.strip()[-300:]}")
        return "; ".join(problems)

    async def require(self) -> None:
        """Raises ToolFailed if no engine works."""
        if problem := await self.find():
            raise ToolFailed(f"Commands can't run: {problem}. {ENGINE_ADVICE}")

    async def call(self, *arguments: str) -> EngineAnswer:
        """Calls the engine. Raises ToolFailed if no engine works."""
        await self.require()
        return await self._call(self.program, *arguments)

    async def _call(self, program: str, *arguments: str) -> EngineAnswer:
        with anyio.move_on_after(ENGINE_SECONDS):
            try:
                done = await anyio.run_process(
                    [program, *arguments],
                    stdin=subprocess.DEVNULL,
                    check=False,
                    env=self.environment,
                    start_new_session=True,
                )
            except OSError as error:
                return EngineAnswer(code=-1, output="", error=str(error))
            return EngineAnswer(
                code=done.returncode,
                output=done.stdout.decode(errors="replace"),
                error=done.stderr.decode(errors="replace"),
            )
        return EngineAnswer(code=-1, output="", error=f"no answer within {ENGINE_SECONDS:g} s")
