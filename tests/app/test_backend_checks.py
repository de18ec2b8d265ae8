"""The checks of the execution backends."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio

from hermes.app.backend_checks import backend_jobs, check_chosen, check_others
from hermes.settings import load
from hermes.testing.memory_sandbox import MemoryBackend, MemoryMachine
from hermes.types.checks import Check
from hermes.types.errors import ConfigError
from hermes.types.execution import BackendFinding, BackendManifest, BackendOptions

WORKS = BackendFinding(level="ok", text="level one")
LIMITED = BackendFinding(level="warning", text="no limit of memory", hint="install systemd")
FAILS = BackendFinding(level="error", text="podman is missing", hint="install podman")


class CheckedBackend(MemoryBackend):
    """A backend whose check returns the given findings. Records whether the backend was closed."""

    def __init__(self, *findings: BackendFinding) -> None:
        super().__init__(MemoryMachine())
        self.findings = findings
        self.closed = False

    async def check(self) -> Sequence[BackendFinding]:
        return self.findings

    async def aclose(self) -> None:
        self.closed = True


def made_before(backend: CheckedBackend, options: BackendOptions) -> CheckedBackend:
    return backend


async def checked(home: Path, chosen: str, **backends: CheckedBackend) -> list[Check]:
    manifests = [
        BackendManifest(name=name, make=partial(made_before, one)) for name, one in backends.items()
    ]
    settings = load(home, {"TERMINAL_ENV": chosen})
    return [check for job in backend_jobs(settings, manifests) for check in await job.run()]


async def test_all_findings_of_the_backend_in_use_are_shown(tmp_path: Path) -> None:
    found = await checked(tmp_path, "one", one=CheckedBackend(WORKS, LIMITED, FAILS))
    assert [(one.level, one.text, one.hint) for one in found] == [
        ("ok", "one (in use): level one", ""),
        ("warning", "one (in use): no limit of memory", "install systemd"),
        ("error", "one (in use): podman is missing", "install podman"),
    ]
    assert {one.name for one in found} == {"commands"}


async def test_a_backend_that_is_not_in_use_is_never_an_error(tmp_path: Path) -> None:
    used, other, broken = CheckedBackend(WORKS), CheckedBackend(LIMITED), CheckedBackend(FAILS)
    found = await checked(tmp_path, "used", used=used, other=other, broken=broken)
    assert [(one.level, one.text) for one in found] == [
        ("ok", "used (in use): level one"),
        ("ok", "other backends that work here: other; that do not: broken"),
    ]
    assert not found[-1].hint
    assert used.closed
    assert other.closed


async def test_without_a_backend_the_check_says_that_no_command_runs(tmp_path: Path) -> None:
    first, second = await checked(tmp_path, "none", one=CheckedBackend(WORKS))
    assert (first.level, second.level) == ("ok", "ok")
    assert first.text == "the agent runs no commands (terminal.backend: none)"


async def test_an_unknown_backend_is_an_error_that_names_the_known_ones(tmp_path: Path) -> None:
    first, second = await checked(tmp_path, "nonsense", one=CheckedBackend(WORKS))
    assert (first.level, "use one of none, one" in first.text) == ("error", True)
    assert second.text == "other backends that work here: one; that do not: none"


def refused(options: BackendOptions) -> CheckedBackend:
    raise ConfigError("the package modal is missing")


async def test_a_backend_that_can_not_be_made_is_an_error_only_if_it_is_in_use(
    tmp_path: Path,
) -> None:
    manifest = BackendManifest(name="one", make=refused)
    (used,) = await check_chosen(load(tmp_path, {"TERMINAL_ENV": "one"}), manifest)
    assert (used.level, used.text) == ("error", "one (in use): the package modal is missing")
    (other,) = await check_others(load(tmp_path, {"TERMINAL_ENV": "none"}), [manifest])
    assert other.level == "ok"
    assert other.text == "other backends that work here: none; that do not: one"


class StuckBackend(CheckedBackend):
    async def check(self) -> Sequence[BackendFinding]:
        await anyio.sleep_forever()
        raise AssertionError


async def test_a_backend_that_does_not_answer_is_closed(tmp_path: Path) -> None:
    stuck = StuckBackend()
    manifest = BackendManifest(name="one", make=partial(made_before, stuck))
    (used,) = await check_chosen(load(tmp_path, {"TERMINAL_ENV": "one"}), manifest, 0.01)
    assert (used.level, "no answer within 0.01 s" in used.text) == ("error", True)
    assert stuck.closed
    stuck.closed = False
    (other,) = await check_others(load(tmp_path, {"TERMINAL_ENV": "none"}), [manifest], 0.01)
    assert (other.level, "that do not: one" in other.text) == ("ok", True)
    assert stuck.closed
