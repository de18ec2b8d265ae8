"""The base class of all value objects, which can't be changed after their creation."""

from typing import dataclass_transform

import msgspec


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class ValueMeta(msgspec.StructMeta):
    """Tells type checkers that every value is frozen and keyword-only."""


class Value(msgspec.Struct, metaclass=ValueMeta, frozen=True, kw_only=True, omit_defaults=True):
    """A frozen, keyword-only struct that msgspec can encode. Members of a union add `tag=True`."""
