"""A scripted model server that refuses everything that a strict provider refuses."""

import base64
import re
import struct
from collections.abc import Mapping

import msgspec

from hermes.testing.examples import example_of
from hermes.testing.model import FakeModel
from hermes.testing.scripted import ChatRequest, Plan, PlannedCall
from hermes.testing.strict_schemas import strict_violation

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PLACE = re.compile(r"\{(\d+|images)\}")


class StrictModel(FakeModel):
    """A server that answers every turn with the same plans, one for each step (model call).

    In the text of a plan, `{0}` is replaced by the result of the turn's first tool call, and `{1}`
    by the result of the second. `{images}` is replaced by the types and sizes of the images in the
    request. If the request asks for JSON and the plan has no calls, the answer is JSON. `facts`
    maps the names of properties to their values in this JSON.

    Like `FakeModel`, the server refuses invalid requests. It also refuses a request if the history
    or the plan calls a tool that the request does not declare, if the plan breaks `tool_choice`, if
    the schema is not valid in strict mode, or if an image is not a PNG.
    """

    def __init__(self, *turn: Plan, facts: Mapping[str, object] | None = None) -> None:
        super().__init__(turn=turn)
        self._facts = facts or {}

    def refusal_of(self, request: ChatRequest) -> str | None:
        if reason := super().refusal_of(request) or _undeclared(request) or _invalid(request):
            return reason
        if request.step >= len(self.turn):
            return f"the script has no step {request.step}"
        return _impossible(self.turn[request.step], request)

    def plan_for(self, request: ChatRequest) -> Plan:
        plan = self.turn[request.step]
        if plan.calls:
            return plan
        text = self._json(request)
        return msgspec.structs.replace(plan, text=text or _filled_in(plan.text or "", request))

    def _json(self, request: ChatRequest) -> str | None:
        """Returns the answer to a request for JSON, or None if the request does not ask for
        JSON."""
        wanted = request.response_format
        if wanted is None or wanted.type == "text":
            return None
        schema = wanted.json_schema
        answer = self._facts if schema is None else example_of(schema.schema, self._facts)
        return msgspec.json.encode(answer).decode()


def calls_tools(*wanted: tuple[str, Mapping[str, object]]) -> Plan:
    """Returns the plan of a step in which the model makes all these tool calls in one answer."""
    made = [PlannedCall(name, msgspec.json.encode(given).decode()) for name, given in wanted]
    return Plan(calls=tuple(made))


def _undeclared(request: ChatRequest) -> str | None:
    called = {call.function.name for m in request.messages for call in m.tool_calls or ()}
    if unknown := sorted(called - request.declared):
        return f"the history calls tools that the request does not declare: {unknown}"
    return None


def _impossible(plan: Plan, request: ChatRequest) -> str | None:
    """Returns the reason why the model can't follow its plan; None if it can."""
    called = {call.name for call in plan.calls}
    if unknown := sorted(called - request.declared):
        return f"the script calls tools that the request does not declare: {unknown}"
    match request.tool_choice:
        case None | "auto":
            return None
        case "none":
            return "the script calls a tool, and tool_choice forbids it" if called else None
        case "required":
            return None if called else "the script calls no tool, and tool_choice requires one"
        case chosen:
            name = chosen.function.name
            return None if called == {name} else f"tool_choice requires a call of {name!r}"


def _invalid(request: ChatRequest) -> str | None:
    wanted = request.response_format
    if wanted is not None and wanted.type == "json_schema":
        if wanted.json_schema is None:
            return "response_format has no json_schema"
        if wanted.json_schema.strict and (reason := strict_violation(wanted.json_schema.schema)):
            return f"invalid schema for response_format: {reason}"
    for url in request.images:
        if _described(url) is None:
            return f"an image is no PNG: {url[:40]!r}"
    return None


def _filled_in(text: str, request: ChatRequest) -> str:
    results = request.results

    def known(place: re.Match[str]) -> str:
        if place[1] == "images":
            return ", ".join(_described(url) or "" for url in request.images) or "no image"
        number = int(place[1])
        return results[number] if number < len(results) else "(no result)"

    return _PLACE.sub(known, text)


def _described(url: str) -> str | None:
    """Returns the type and the size of the image in a data URL, or None if the URL contains no PNG
    image."""
    kind, _, encoded = url.removeprefix("data:").partition(";base64,")
    data = base64.b64decode(encoded)
    if kind != "image/png" or not data.startswith(PNG_SIGNATURE) or len(data) < 24:
        return None
    width, height = struct.unpack(">II", data[16:24])
    return f"{kind} of {width}x{height} pixels"
