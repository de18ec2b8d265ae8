"""What is typed while the agent works."""

import pytest

from hermes.entry.terminal.type_ahead import TypeAhead


@pytest.mark.parametrize(
    ("keys", "sent", "left"),
    [
        ("one\rtwo\rthr", ["one", "two"], "thr"),
        ("onx\x7fe\r", ["one"], ""),
        ("two words\x17", [], "two "),
        ("gone\x15here", [], "here"),
        ("a\\\rb\x1b\rc\nd\r", ["a\nb\nc\nd"], ""),
        ("\x1b[200~x\ry\x1b[201~ z", [], "x\ny z"),
        ("\x1b[Aü\r\r", ["ü"], ""),
    ],
)
def test_keys_edit_and_send(keys: str, sent: list[str], left: str) -> None:
    draft, found = TypeAhead(), list[str]()
    for byte in keys.encode():
        found += draft.feed(bytes([byte]))
    assert (found, draft.take(), draft.text) == (sent, left, "")
