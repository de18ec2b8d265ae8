"""Tools that an API client offers with its request and runs itself."""

from typing import Literal

from hermes.types.value import Value


class ClientTool(Value):
    """A tool that an API client runs itself. A call of the tool suspends the turn until the client
    sends the result."""

    name: str
    description: str = ""
    parameters: str = '{"type":"object","properties":{}}'
    """The JSON schema of the arguments, as the client wrote it."""
    strict: bool | None = None
    """Whether the provider must enforce the schema; None leaves the decision to the provider."""


class ToolChoice(Value):
    """Which tools the first model call after a request may or must use."""

    mode: Literal["auto", "none", "required", "named"] = "auto"
    name: str = ""
    """The tool that must be called if the mode is `named`."""
    parallel: bool | None = None
    """Whether the model may call several tools in one answer; None leaves the decision to the
    provider. Unlike `mode`, this field applies to every model call of the turn."""
