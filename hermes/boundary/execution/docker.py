"""The `docker` backend: runs the commands of each sandbox in a container of its own."""

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

import anyio.to_thread
from msgspec.structs import replace

from hermes.boundary.execution.background import Background
from hermes.boundary.execution.bubblewrap import HOME_INSIDE
from hermes.boundary.execution.client_commands import ClientCommands, Machine
from hermes.boundary.execution.client_sandbox import ClientSandbox, CommandSetting
from hermes.boundary.execution.command_place import VisibleFolder
from hermes.boundary.execution.container import (
    CONTAINER_BACKEND,
    HOME_LABEL,
    SETTINGS_LABEL,
    Container,
    ContainerFolders,
    ContainerUse,
    ContainerView,
    name_prefix,
)
from hermes.boundary.execution.container_engine import ENGINE_ADVICE, ContainerEngine
from hermes.boundary.execution.container_network import connect_container, network_finding
from hermes.boundary.execution.container_places import ContainerPlaces
from hermes.boundary.execution.container_seccomp import written_profile
from hermes.boundary.execution.local import LocalSandbox
from hermes.boundary.execution.sandbox_folders import (
    SandboxFolder,
    delete_sandbox,
    known_sandboxes,
    sandbox_id,
)
from hermes.boundary.execution.sandbox_network import SandboxNetwork
from hermes.types.execution import (
    BackendFinding,
    BackendManifest,
    BackendOptions,
    CommandPlace,
    SandboxInfo,
    SandboxScope,
)
from hermes.types.identity import new_id


class DockerBackend:
    """Runs commands with docker or podman. A container is started when its sandbox is first used,
    and ends by itself after it was not used for some time."""

    def __init__(self, options: BackendOptions) -> None:
        clients = options.clients
        self._options = options
        sandboxes = options.sandboxes or options.processes.parent / "sandboxes"
        self._folders = sandboxes / CONTAINER_BACKEND
        self._prefix = name_prefix(self._folders)
        self._engine = ContainerEngine(clients.containers.program, clients.environment)
        self._background = Background(options.processes)
        self._network = SandboxNetwork(
            options.network, options.processes.with_name("network"), separate=True
        )
        self._used: dict[str, ContainerUse] = {}

    @property
    def isolation(self) -> str:
        return f"a container: read-only system, no capabilities; {self._network.description}"

    async def check(self) -> Sequence[BackendFinding]:
        if problem := await self._engine.find():
            text = f"Commands are refused: {problem}."
            return (BackendFinding(level="error", text=text, hint=ENGINE_ADVICE),)
        image, program = self._options.clients.containers.image, self._engine.program
        if (await self._engine.call("image", "inspect", image)).code:
            text = f"Commands are refused, because {program} does not have the image {image!r}."
            return (BackendFinding(level="error", text=text, hint=f"Run: {program} pull {image}"),)
        works = BackendFinding(
            level="ok", text=f"Commands run in containers of {image} ({program})."
        )
        if missing := network_finding(self._options.network, self._engine):
            return missing
        return (works, *self._network.findings())

    async def open(self, scope: SandboxScope) -> ClientSandbox:
        owned = self._options.own_workspaces and self._options.sharing != "agent"
        chosen = "" if owned else scope.workspace
        own = SandboxFolder(self._folders, scope, self._options.sharing, chosen)
        workspace = own.workspace if owned else Path(scope.workspace)
        folders = ContainerFolders(own, workspace)
        name = f"{self._prefix}{own.id}"
        view = partial(self._view, scope, own, workspace, folders)
        size = (str(workspace), self._options.limits.workspace_bytes)
        await self._network.start()
        connect = None
        if self._network.used:
            connect = partial(connect_container, self._network.folder, own.id)
        container = Container(self._engine, name, self._used, partial(view, name), size, connect)
        owner = folders.new_files_owner
        mounts = self._options.mounts
        files = LocalSandbox(scope, None, None, workspace, prepare=folders.ensure, owner=owner)
        places = ContainerPlaces(
            self._options.clients.containers.image,
            scope,
            workspace,
            [
                VisibleFolder(shown=Path(scope.workspace), real=workspace),
                VisibleFolder(shown=HOME_INSIDE, real=own.home),
                *(VisibleFolder(shown=Path(one.path), real=Path(one.path)) for one in mounts),
            ],
            folders.ensure,
            self._hidden(scope),
        )

        async def pinned(place: CommandPlace, *, lasting: bool) -> Machine | None:
            copies = await places.copies(place, own.approved)
            if not copies:
                return None
            scripts = [] if lasting else [path for _, path in copies]
            overlays = await places.overlays(scripts, own.overlays)
            only = f"{name}-{new_id()}"
            described = partial(view, only, copies, overlays)
            return Container(self._engine, only, {}, described, size, connect)

        setting = CommandSetting(
            backend=CONTAINER_BACKEND,
            private_files=owned,
            scope=scope,
            environment=self._options.environment,
            secrets=self._options.secrets,
            sandbox=own.id,
            end=self.end,
            pinned=pinned,
            remark=partial(self._network.remark, own.id),
        )
        return ClientSandbox(setting, container, files, places, self._background)

    def _hidden(self, scope: SandboxScope) -> tuple[Path, ...]:
        home = (Path(scope.home),) if scope.home else ()
        return (*home, *self._options.hidden)

    def _view(
        self,
        scope: SandboxScope,
        own: SandboxFolder,
        workspace: Path,
        folders: ContainerFolders,
        name: str,
        copies: tuple[tuple[Path, str], ...] = (),
        overlays: Mapping[str, Path] = MappingProxyType({}),
    ) -> ContainerView:
        """Describes the container with this name, and creates its folders. If `copies` contains
        scripts, the container is for one command only."""
        folders.ensure()
        hidden = (one.resolve() for one in self._hidden(scope))
        containers = self._options.clients.containers
        view = ContainerView(
            name=name,
            labels={
                HOME_LABEL: str(self._folders.resolve()),
                "hermes.agent": scope.agent,
                "hermes.session": str(scope.session),
            },
            workspace=workspace.resolve(),
            shown=scope.workspace,
            home=own.home.resolve(),
            # The container has a /tmp of its own, so this folder stays empty.
            empty=own.temporary.resolve(),
            user=folders.user(),
            hidden=tuple(dict.fromkeys(one for one in hidden if one.is_dir())),
            mounts=self._options.mounts,
            variables=self._network.environment(),
            copies=copies,
            overlays=overlays,
            filter=written_profile(self._folders) if self._engine.is_podman else None,
            limits=self._options.limits,
            options=replace(containers, idle_seconds=0) if copies else containers,
        )
        # The labels name the session that starts the container. Another session that shares the
        # container would give other labels, so labels do not count as settings.
        settings = repr(replace(view, labels={})).encode()
        digest = hashlib.sha256(settings).hexdigest()[:16]
        return replace(view, labels={**view.labels, SETTINGS_LABEL: digest})

    async def end(self, handle: str) -> bool:
        kind, _, rest = handle.partition(":")
        name, _, mark = rest.partition(":")
        if kind != CONTAINER_BACKEND or not name.startswith(self._prefix) or not mark.isalnum():
            return False
        container = Container(self._engine, name, self._used)
        if not await container.runs():
            return False
        ended = await ClientCommands(container).end(mark)
        if "-" in name.removeprefix(self._prefix):
            await container.clear()
        return ended

    async def sandboxes(self) -> Sequence[SandboxInfo]:
        found = await anyio.to_thread.run_sync(lambda: list(known_sandboxes(self._folders)))
        return sorted(found, key=lambda one: one.used_at, reverse=True)

    async def reset(self, id: str) -> bool:
        await self._background.kill_in(id)
        if id.isalnum():
            await self._remove(id)
        return await anyio.to_thread.run_sync(delete_sandbox, self._folders, id)

    async def discard(self, scope: SandboxScope) -> None:
        if self._options.sharing == "session":
            await self.reset(sandbox_id(scope, "session"))

    async def close_idle(self, seconds: float) -> int:
        """Removes the containers that were not used for this number of seconds, and the containers
        of homes that no longer exist."""
        if await self._engine.find():
            return 0
        busy = await anyio.to_thread.run_sync(self._background.busy_sandboxes)
        used = {one.id: one.used_at for one in await self.sandboxes()}
        closed = 0
        for name, home in await self._containers():
            container = Container(self._engine, name, self._used)
            id, _, _ = name.removeprefix(self._prefix).partition("-")
            own = name.startswith(self._prefix) and id not in busy
            idle = own and time.time() - used.get(id, 0.0) >= seconds
            lost = not await anyio.to_thread.run_sync(os.path.isdir, home)
            if lost or (idle and not await _is_busy(container)):
                await container.clear()
                closed += 1
        return closed

    async def aclose(self) -> None:
        """Ends the proxy. An unused container ends by itself."""
        await self._network.aclose()

    async def _remove(self, id: str) -> None:
        """Removes the containers of a sandbox, if there is an engine."""
        if await self._engine.find():
            return
        for name, _ in await self._containers():
            if name.startswith(f"{self._prefix}{id}"):
                await Container(self._engine, name, self._used).clear()

    async def _containers(self) -> list[tuple[str, str]]:
        """Returns, for each container that Hermes has started, its name and the home to which it
        belongs."""
        shown = f'{{{{.Names}}}}\t{{{{index .Labels "{HOME_LABEL}"}}}}'
        if not self._engine.is_podman:
            shown = f'{{{{.Names}}}}\t{{{{.Label "{HOME_LABEL}"}}}}'
        answer = await self._engine.call("ps", "--filter", f"label={HOME_LABEL}", "--format", shown)
        lines = (line.partition("\t") for line in answer.output.splitlines())
        return [(name, home) for name, _, home in lines]


async def _is_busy(container: Container) -> bool:
    """Returns whether a command runs in the container. Three processes do not count: the first
    process of the container, its child, and the shell that counts the processes."""
    code, said = await ClientCommands(container).call("set -- /proc/[0-9]*; echo $#")
    return code == 0 and int(said) > 3


DOCKER_BACKEND = BackendManifest(name=CONTAINER_BACKEND, make=DockerBackend)
