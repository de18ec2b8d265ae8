"""Wire formats and providers: ours, and those of plugins."""

import pytest

from hermes.core.models.catalog import Catalog
from hermes.core.models.openai_chat import OpenAIChat
from hermes.core.models.registry import ModelRegistry
from hermes.types.errors import ConfigError
from hermes.types.providers import Provider


class Telegraph(OpenAIChat):
    name = "telegraph"


ACME = Provider(name="acme", label="Acme", base_url="http://acme/v1", key_required=False)


def test_ours_are_there_without_plugins() -> None:
    found = ModelRegistry.of()
    assert found.catalog == Catalog.load()
    assert list(found.wires) == ["chat", "responses", "anthropic"]


def test_plugins_add_wire_formats_and_providers_in_any_order() -> None:
    found = ModelRegistry.of([ACME, Telegraph()])
    assert found.catalog.named("acme") == ACME
    assert isinstance(found.wires["telegraph"], Telegraph)


@pytest.mark.parametrize("added", [OpenAIChat(), Catalog.load().providers[0]])
def test_a_name_that_is_taken_is_refused(added: OpenAIChat | Provider) -> None:
    with pytest.raises(ConfigError, match="which exists"):
        ModelRegistry.of([added])
