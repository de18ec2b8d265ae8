"""The fixture that installs the API clients of other projects."""

import pytest

from hermes.testing.api_clients import INSTALL_SECONDS, ApiClients, installed_clients
from hermes.types.errors import Disconnected


@pytest.fixture(scope="session")
def clients() -> ApiClients:
    """Returns the clients. They are installed at the first use on a machine."""
    try:
        return installed_clients()
    except Disconnected as error:
        pytest.skip(str(error))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives the tests more time, because the first test on a machine installs the clients."""
    for item in items:
        if isinstance(item, pytest.Function) and "clients" in item.fixturenames:
            item.add_marker(pytest.mark.timeout(2 * INSTALL_SECONDS))
            item.add_marker(pytest.mark.slow)
