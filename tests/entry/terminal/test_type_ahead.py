"""A person can edit and send text while the agent works."""

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
def test_keys_edit_and_send_the_typed_text(keys: str, sent: list[str], left: str) -> None:
    draft, found = TypeAhead(), list[str]()
    for byte in keys.encode():
        found += draft.feed(bytes([byte]))
    assert (found, draft.take(), draft.text) == (sent, left, "")


def test_esc_alone_is_a_key_and_esc_before_enter_is_not() -> None:
    typed, pending = TypeAhead(), list[bool]()
    for keys in (b"one\x1b", b"\r", b"two\x1b"):
        assert typed.feed(keys) == []
        pending.append(typed.pending)
    assert pending == [True, False, True]
    typed.end_pending()
    assert not typed.pending
    assert typed.feed(b"\r") == ["one\ntwo"]
