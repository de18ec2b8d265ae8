"""Makes JSON values that conform to a schema, as answers of fake models."""

from collections.abc import Mapping
from typing import Any

from hermes.text.json_schema import resolved


def example_of(
    schema: Mapping[str, Any],
    facts: Mapping[str, object] | None = None,
    root: Mapping[str, Any] | None = None,
) -> object:
    """Returns a value that conforms to the schema, with every property that the schema lists.

    If `facts` has a value for the name of a property, that value is used.
    """
    facts, root = facts or {}, root or schema
    match schema:
        case {"$ref": str(reference)}:
            found = resolved(root, reference)
            assert isinstance(found, dict)
            return example_of(found, facts, root)
        case {"const": value} | {"enum": [value, *_]}:
            return value
        case {"anyOf": [first, *_]} | {"oneOf": [first, *_]}:
            return example_of(first, facts, root)
        case {"type": [kind, *_]}:
            return example_of({**schema, "type": kind}, facts, root)
        case {"properties": properties}:
            return {
                name: facts[name] if name in facts else example_of(one, facts, root)
                for name, one in properties.items()
            }
        case {"type": "array"}:
            items = schema.get("items", {})
            count = max(1, schema.get("minItems", 1))
            return [example_of(items, facts, root) for _ in range(count)]
    return _plain_example(schema)


def _plain_example(schema: Mapping[str, Any]) -> object:
    match schema.get("type"):
        case "object":
            return {}
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return "word".ljust(schema.get("minLength", 0), "s")[: schema.get("maxLength")]
