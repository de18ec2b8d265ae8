"""Contract tests for wire formats: how each format declares tools and sends the tool choice."""

import re
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec
import pytest
from msgspec.structs import replace

from hermes.core.tools.schema import schema_of
from hermes.testing.upstream import LOOK, request_to
from hermes.types.client_tools import ClientTool, ToolChoice
from hermes.types.models import WireFormat
from hermes.types.profile import ModelChoice


class ToolsContract:
    """The part of `WireFormatContract` about tools. The inheriting class implements the abstract
    methods."""

    def wire(self) -> WireFormat:
        raise NotImplementedError

    def check(self, body: bytes) -> None:
        raise NotImplementedError

    def choice(self, base_url: str = "http://127.0.0.1:9/v1") -> ModelChoice:
        raise NotImplementedError

    def test_a_tool_is_declared_with_its_schema(self) -> None:
        declared = self.wire().declare(LOOK)
        inner = list(_mappings(declared))
        assert any(one.get("name") == "look" for one in inner)
        assert any(one.get("description") == "Looks." for one in inner)
        assert schema_of(LOOK.arguments) in inner
        with_tools = msgspec.json.decode(self.wire().body(request_to(self.choice())))
        assert dict(declared).items() <= {**with_tools["tools"][-1]}.items()
        without = self.wire().body(replace(request_to(self.choice()), tools=()))
        assert b'"tools"' not in without

    def test_a_client_tool_is_declared_unchanged_after_the_tools_of_the_agent(self) -> None:
        schema = '{"type":"object","title":"Kept","properties":{"at":{"type":"string"}}}'
        theirs = ClientTool(name="listen", description="Listens.", parameters=schema)
        body = self.wire().body(replace(request_to(self.choice()), tools=(LOOK, theirs)))
        self.check(body)
        first, second = msgspec.json.decode(body)["tools"]
        assert dict(self.wire().declare(LOOK)).items() <= first.items()
        assert any(one.get("name") == "listen" for one in _mappings(second))
        assert msgspec.json.decode(schema) in list(_mappings(second))
        alone = self.wire().body(replace(request_to(self.choice()), tools=(theirs,)))
        assert msgspec.json.decode(alone)["tools"] == [second]

    @pytest.mark.parametrize("parallel", [None, True, False])
    @pytest.mark.parametrize("mode", ["none", "required", "named"])
    def test_a_choice_of_tools_is_sent_and_the_default_is_not(
        self, mode: Literal["none", "required", "named"], parallel: bool | None
    ) -> None:
        assert not re.search(rb"tool_choice|parallel", self.wire().body(request_to(self.choice())))
        chosen = ToolChoice(mode=mode, name="look" if mode == "named" else "", parallel=parallel)
        body = self.wire().body(replace(request_to(self.choice()), tool_choice=chosen))
        self.check(body)
        sent = msgspec.json.decode(body)["tool_choice"]
        assert (b"look" in msgspec.json.encode(sent)) == (mode == "named")
        assert (b"parallel" in body) == (parallel is not None and self.limits_parallel(mode))

    def limits_parallel(self, mode: str) -> bool:
        """Returns whether the vendor accepts a limit on parallel calls together with this tool
        choice."""
        return True


def _mappings(value: object) -> Iterator[Mapping[str, object]]:
    """Yields all mappings in the value, beginning with the value itself if it is a mapping."""
    if isinstance(value, Mapping):
        yield value
        for inner in value.values():
            yield from _mappings(inner)
