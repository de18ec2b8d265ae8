"""Makes the table rows of a reference page from the fields of a struct and their docstrings."""

import inspect
import sys
from collections.abc import Iterator
from functools import cache
from types import NoneType, UnionType
from typing import Literal, NewType, Union, get_args, get_origin

import msgspec
from msgspec import UnsetType

from hermes.settings.schema import docstrings, unannotated

Struct = type[msgspec.Struct]
_NAMES: dict[object, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    msgspec.Raw: "any JSON",
}


def field_rows(struct: Struct, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yields the name, the possible values and the meaning of each field, including the fields of
    inner structs."""
    for field in msgspec.structs.fields(struct):
        name = f"{prefix}{field.encode_name}"
        text = field_text(struct, field.name)
        yield f"`{name}`", value_in_words(field.type), text
        for inner, many in structs_in(field.type):
            yield from field_rows(inner, f"{name}[]." if many else f"{name}.")


def field_text(struct: Struct, name: str) -> str:
    """Returns the docstring under the field. Raises LookupError if the field has no docstring."""
    for cls in struct.__mro__:
        if text := _texts(cls.__module__).get((cls.__name__, name)):
            return " ".join(text.split())
    raise LookupError(f"{struct.__name__}.{name} has no docstring")


@cache
def _texts(module: str) -> dict[tuple[str, str], str]:
    """Maps (class name, field name) to the docstring under the field, for all classes of a
    module."""
    return docstrings(sys.modules[module])


def struct_text(struct: Struct) -> str:
    """Returns the first paragraph of the struct's docstring. Raises LookupError if the struct has
    no docstring."""
    text = inspect.cleandoc(struct.__doc__ or "").partition("\n\n")[0]
    if not text:
        raise LookupError(f"{struct.__name__} has no docstring")
    return " ".join(text.split())


def structs_in(kind: object) -> Iterator[tuple[Struct, bool]]:
    """Yields each struct that a value of this type can be or contain. The bool says whether the
    struct is the item of a list."""
    for one in alternatives(kind):
        if isinstance(one, type) and issubclass(one, msgspec.Struct):
            yield one, False
        elif get_origin(one) in (list, tuple):
            yield from ((inner, True) for inner, _ in structs_in(get_args(one)[0]))


def alternatives(kind: object) -> list[object]:
    """Returns the types of a union, without the types `None` and `UnsetType`, which mean that the
    value is absent."""
    kind = unannotated(kind)
    if isinstance(kind, NewType):
        return alternatives(kind.__supertype__)
    if get_origin(kind) in (Union, UnionType):
        absent = (NoneType, UnsetType)
        return [one for part in get_args(kind) if part not in absent for one in alternatives(part)]
    return [kind]


def value_in_words(kind: object) -> str:
    """Describes the type of a value in plain words."""
    return " or ".join(dict.fromkeys(_one_in_words(one) for one in alternatives(kind)))


def _one_in_words(kind: object) -> str:
    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    if get_origin(kind) in (list, tuple):
        inner = value_in_words(get_args(kind)[0])
        return "list of objects" if inner == "object" else f"list of {inner}s"
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return "object"
    return _NAMES[kind]
