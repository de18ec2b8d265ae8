"""Describes a response format, as a prompt for the model and as request fields for providers."""

import msgspec
from msgspec import Raw, Struct

from hermes.types.messages import ResponseFormat
from hermes.types.models import ModelRequest

_OBJECT = (
    "Your final answer must be one JSON object and nothing else: no other text, no code fence."
)
_SCHEMA = (
    "Your final answer must be JSON that conforms to the JSON schema below, and nothing else: no"
    " other text, no code fence. This does not apply to tool calls.\n\nJSON schema:\n{schema}"
)


JSON_OBJECT = b'{"type":"json_object"}'
"""The value of the format field with which a request asks for a JSON object without a schema. The
value is the same in both of OpenAI's wire formats."""


class _SchemaFields(Struct, omit_defaults=True):
    name: str
    schema: Raw
    description: str = ""
    strict: bool | None = None


_encoder = msgspec.json.Encoder()


def enforced(request: ModelRequest) -> ResponseFormat | None:
    """Returns the format that we ask the endpoint to enforce. Returns None if the request has no
    format or the endpoint can't enforce any format.

    If the endpoint can enforce a JSON object, but no schema, we ask for a JSON object instead of
    the schema.
    """
    wanted, able = request.response_format, request.choice.quirks.structured
    if wanted is None or wanted.kind in able:
        return wanted
    return ResponseFormat(kind="json_object") if "json_object" in able else None


def format_instruction(wanted: ResponseFormat | None, enforced: ResponseFormat | None) -> str:
    """Returns the prompt that describes the wanted format. Returns "" if no format is wanted or the
    endpoint enforces the schema."""
    if wanted is None or (wanted.kind == "json_schema" and wanted == enforced):
        return ""
    # An enforced `json_object` needs an instruction, too, because endpoints require that the
    # conversation mentions JSON.
    return _SCHEMA.format(schema=wanted.schema) if wanted.schema else _OBJECT


def schema_fields(form: ResponseFormat) -> bytes:
    """Returns the schema with its name and description, in the fields that OpenAI's formats
    share."""
    schema = Raw(form.schema.encode())
    return _encoder.encode(_SchemaFields(form.name, schema, form.description, form.strict))
