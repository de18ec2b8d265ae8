"""The form of an answer, as words for the model and as fields for providers that enforce it."""

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
"""How both of OpenAI's wire formats ask for any JSON object."""


class _SchemaFields(Struct, omit_defaults=True):
    name: str
    schema: Raw
    description: str = ""
    strict: bool | None = None


_encoder = msgspec.json.Encoder()


def enforced(request: ModelRequest) -> ResponseFormat | None:
    """The form that the endpoint is told to enforce; None if it can't enforce any.

    An endpoint that knows no schemas may still be able to enforce that the answer is an object.
    """
    wanted, able = request.response_format, request.choice.quirks.structured
    if wanted is None or wanted.kind in able:
        return wanted
    return ResponseFormat(kind="json_object") if "json_object" in able else None


def format_instruction(wanted: ResponseFormat | None, enforced: ResponseFormat | None) -> str:
    """The instruction for the model; empty if the endpoint enforces the schema itself."""
    if wanted is None or (wanted.kind == "json_schema" and wanted == enforced):
        return ""
    # Endpoints refuse to enforce an object unless the conversation mentions JSON.
    return _SCHEMA.format(schema=wanted.schema) if wanted.schema else _OBJECT


def schema_fields(form: ResponseFormat) -> bytes:
    """The schema and what is said about it, as both of OpenAI's wire formats name the fields."""
    schema = Raw(form.schema.encode())
    return _encoder.encode(_SchemaFields(form.name, schema, form.description, form.strict))
