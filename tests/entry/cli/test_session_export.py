"""A conversation is exported as Markdown or JSON."""

import json

from hermes.control.sessions import Entry, Summary
from hermes.entry.cli.session_export import as_json, as_markdown, fenced
from hermes.types.identity import CallId
from hermes.types.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage

CALL = ToolCall(id=CallId("t_0_0"), name="look", arguments='{"at": "x"}')
SUMMARY = Summary(
    key="agent:main:cli:private:trip",
    title="A trip\nto Oslo",
    platform="cli",
    chat="trip",
    messages=4,
    created_at=0.0,
    updated_at=0.0,
    generation=0,
    current=True,
    id="trip",
)
ENTRIES = [
    Entry(at=1.0, generation=0, turn="t", message=message)
    for message in (
        UserMessage(text="Where to?"),
        AssistantMessage(text="Let me look.", calls=(CALL,)),
        ToolMessage(call=CALL.id, text="```\ncode\n```"),
        AssistantMessage(text="To *Oslo*."),
    )
]


def test_markdown_has_a_heading_for_each_message_and_quotes_tools() -> None:
    lines = as_markdown(SUMMARY, ENTRIES).splitlines()
    assert lines[0] == "# A trip to Oslo"
    headings = [line.partition(",")[0] for line in lines if line.startswith("## ")]
    assert headings == ["## You", "## Hermes", "## Hermes"]
    text = "\n".join(lines)
    assert 'Tool `look`:\n\n```json\n{"at": "x"}\n```' in text
    assert "Result:\n\n````\n```\ncode\n```\n````" in text
    assert text.endswith("To *Oslo*.")


def test_markdown_can_not_control_a_terminal() -> None:
    hostile = Entry(at=1.0, generation=0, turn="t", message=UserMessage(text="a\x1b[2Jb"))
    assert "\x1b" not in as_markdown(SUMMARY, [hostile])


def test_json_has_a_line_for_each_message() -> None:
    lines = [json.loads(line) for line in as_json(SUMMARY, ENTRIES).splitlines()]
    assert [line["message"]["role"] for line in lines] == ["user", "assistant", "tool", "assistant"]
    assert {line["conversation"] for line in lines} == {0}


def test_a_fence_is_longer_than_the_backticks_inside() -> None:
    assert fenced("a ```` b") == "`````\na ```` b\n`````"
