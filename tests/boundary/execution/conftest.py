"""What tests of commands share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.boundary.execution.local import LocalExecution
from hermes.testing.commands import local_execution


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalExecution]:
    with local_execution(tmp_path) as local:
        yield local
