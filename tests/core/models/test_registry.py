"""The registry contains the wire formats and providers of Hermes and of plugins."""

import pytest

from hermes.core.models.catalog import Catalog
from hermes.core.models.openai_chat import OpenAIChat
from hermes.core.models.registry import ModelRegistry
from hermes.core.models.wires import builtin_wire_formats
from hermes.types.errors import ConfigError
from hermes.types.providers import Provider


class Telegraph(OpenAIChat):
    name = "telegraph"


ACME = Provider(name="acme", label="Acme", base_url="http://acme/v1", key_required=False)


def test_the_built_in_providers_are_always_present() -> None:
    found = ModelRegistry.of(builtin_wire_formats())
    assert found.catalog == Catalog.load()
    assert list(found.wires) == ["chat", "responses", "anthropic"]


def test_plugins_add_wire_formats_and_providers_in_any_order() -> None:
    found = ModelRegistry.of([ACME, Telegraph()])
    assert found.catalog.named("acme") == ACME
    assert isinstance(found.wires["telegraph"], Telegraph)


@pytest.mark.parametrize("added", [OpenAIChat(), Catalog.load().providers[0]])
def test_a_name_that_is_taken_is_refused(added: OpenAIChat | Provider) -> None:
    with pytest.raises(
        ConfigError, match=r"which already exists|two plugins register the wire format"
    ):
        ModelRegistry.of([*builtin_wire_formats(), added])
