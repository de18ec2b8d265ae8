"""The `response_format` of a request: text, any JSON object, or JSON that conforms to a schema."""

import re

import anyio.to_thread
import msgspec
from msgspec import UNSET, Raw, UnsetType

from hermes.entry.http.errors import bad_request
from hermes.text.json_schema import schema_problem
from hermes.types.messages import ResponseFormat

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_PARAM = "response_format.json_schema"


class SchemaFormat(msgspec.Struct):
    name: str = ""
    """The name of the schema: 1 to 64 letters, digits, `_` or `-`."""
    schema: Raw | UnsetType = UNSET
    """The JSON schema of the answer."""
    description: str | None = None
    """A description that tells the model what the answer is for."""
    strict: bool | None = None
    """Whether to ask the provider to enforce the schema. The gateway checks the answer in any
    case."""


class RequestedFormat(msgspec.Struct):
    type: str
    """The type of the format: `text`, `json_object` or `json_schema`."""
    json_schema: SchemaFormat | None = None
    """The schema, if the type is `json_schema`."""
    schema: Raw | UnsetType = UNSET
    """Ignored. Other servers read a schema here."""


async def response_format(requested: RequestedFormat | None) -> ResponseFormat | None:
    """Returns the required format of the answer; None for text. Raises ApiError if the request
    is wrong."""
    match requested:
        case None | RequestedFormat(type="text"):
            return None
        case RequestedFormat(type="json_object"):
            return ResponseFormat(kind="json_object")
        case RequestedFormat(type="json_schema", json_schema=SchemaFormat() as given):
            return await _with_schema(given)
        case RequestedFormat(type="json_schema"):
            raise bad_request("A JSON schema is missing.", param=_PARAM)
    message = f"There is no response format {requested.type[:100]!r}."
    raise bad_request(message, param="response_format.type")


async def _with_schema(given: SchemaFormat) -> ResponseFormat:
    if not _NAME.fullmatch(given.name):
        message = "The name of a schema has 1 to 64 letters, digits, dashes and underscores."
        raise bad_request(message, param=f"{_PARAM}.name")
    if isinstance(given.schema, UnsetType):
        raise bad_request("A JSON schema is missing.", param=f"{_PARAM}.schema")
    schema = str(given.schema, "utf-8")
    problem = await anyio.to_thread.run_sync(schema_problem, schema)
    if problem:
        message = f"The JSON schema can't be used: {problem}."
        raise bad_request(message, "invalid_json_schema", f"{_PARAM}.schema")
    return ResponseFormat(
        kind="json_schema",
        schema=schema,
        name=given.name,
        description=given.description or "",
        strict=given.strict,
    )
