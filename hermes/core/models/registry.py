"""The wire formats and providers that can be used."""

from collections.abc import Iterable

from hermes.core.models.catalog import Catalog
from hermes.core.models.wires import WireFormats, wire_formats
from hermes.types.models import WireFormat
from hermes.types.providers import Provider
from hermes.types.value import Value


class ModelRegistry(Value):
    catalog: Catalog
    wires: WireFormats

    @classmethod
    def of(cls, registered: Iterable[WireFormat | Provider]) -> "ModelRegistry":
        """Combines the registered wire formats and providers with the built-in table of providers.

        Raises ConfigError if two wire formats or two providers have the same name.
        """
        wires: list[WireFormat] = []
        providers: list[Provider] = []
        for one in registered:
            if isinstance(one, Provider):
                providers.append(one)
            else:
                wires.append(one)
        return cls(catalog=Catalog.load().extended(providers), wires=wire_formats(wires))
