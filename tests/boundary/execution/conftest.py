"""Fixtures for tests of commands."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.boundary.execution.local import LocalBackend
from hermes.testing.commands import local_backend


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalBackend]:
    with local_backend(tmp_path) as local:
        yield local
