"""Secrets in a tool result are redacted, and a long result is stored in a file."""

import threading
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hermes.core.tools.results import LARGEST_RESULT, SECRET_MARGIN, ResultFilter, redacted
from hermes.state.spill import Spill
from hermes.testing.turns import CALL, a_turn


async def test_a_short_result_is_not_changed_and_not_spilled(tmp_path: Path) -> None:
    results = ResultFilter(Spill(tmp_path / "spill"), longest=100)
    filtered = await results.apply(a_turn(), CALL, "x" * 100)
    assert filtered.text == "x" * 100
    assert not filtered.spilled
    assert not (tmp_path / "spill").exists()


async def test_a_long_result_is_spilled_for_its_session_only(tmp_path: Path) -> None:
    spill = Spill(tmp_path)
    text = "\n".join(map(str, range(1000)))
    turn = a_turn()
    shown = await ResultFilter(spill, longest=400).apply(turn, CALL, text)
    assert len(shown.text) <= 400
    assert f"spill:{CALL}" in shown.text
    assert shown.spilled
    assert spill.read(str(turn.session), f"spill:{CALL}") == text


async def test_secrets_are_redacted_before_a_result_is_spilled(tmp_path: Path) -> None:
    spill = Spill(tmp_path)
    results = ResultFilter(spill, redact=lambda text: text.replace("hunter2", "…"), longest=400)
    turn = a_turn()
    shown = await results.apply(turn, CALL, "hunter2\n" * 400)
    assert "hunter2" not in shown.text
    assert "hunter2" not in spill.read(str(turn.session), f"spill:{CALL}")


@given(st.integers(0, 40), st.integers(0, 40))
def test_a_cut_leaves_no_piece_of_a_secret(before: int, after: int) -> None:
    secret = "hunter2-" * 4
    text = "z" * (100 - before) + secret + "z" * (SECRET_MARGIN - after) + secret + "z" * 100
    shown = redacted(text, lambda text: text.replace(secret, "…"), 100)
    assert "hunter2" not in shown
    assert f"the rest of {len(text)} characters" in shown
    assert len(shown) <= 100 + 60


@given(st.integers(1, SECRET_MARGIN * 2))
def test_only_the_end_of_a_slightly_too_long_text_is_cut(more: int) -> None:
    shown = redacted("x" * (100 + more), str, 100)
    assert shown == "x" * 100 + f"…\n[the rest of {100 + more} characters was dropped]"


async def test_a_huge_result_is_cut_without_blocking_the_event_loop(tmp_path: Path) -> None:
    spill, loop_s = Spill(tmp_path), threading.get_ident()
    looked: list[int] = []

    def redact_tokens(text: str) -> str:
        assert threading.get_ident() != loop_s
        looked.append(len(text))
        return text

    await ResultFilter(spill, redact=redact_tokens).apply(a_turn(), CALL, "x\n" * LARGEST_RESULT)
    assert looked == [LARGEST_RESULT + SECRET_MARGIN]
    assert len(spill.read(str(a_turn().session), f"spill:{CALL}")) < LARGEST_RESULT + 100
