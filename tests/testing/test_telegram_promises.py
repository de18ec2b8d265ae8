"""The checks of a gateway on Telegram notice calls that come too early, and turns of one chat that
overlap."""

from hermes.testing.telegram_child import CallRecord, PauseRecord
from hermes.testing.telegram_promises import early_calls, overlaps
from hermes.testing.telegram_stage import StoredFreeze


def call(pid: int, at: float, until: float = 0.0, chat: str = "7") -> CallRecord:
    return CallRecord(pid=pid, chat=chat, at=at, until=until)


def test_a_call_that_starts_after_the_answer_429_is_early() -> None:
    limited = [call(1, 10.0), call(1, 10.1), call(1, 10.2, until=12.2)]
    assert list(early_calls([*limited, call(1, 12.3)], [])) == []
    assert list(early_calls([*limited, call(1, 12.0, chat="8")], [])) == []
    assert list(early_calls([*limited, call(2, 12.0)], [])) == [], "the window was not stored"
    (found,) = early_calls([*limited, call(1, 12.0)], [])
    assert found == "early: a call for 7 came 0.20 s before the window's end"


def test_a_call_inside_a_window_that_was_stored_before_the_kill_is_early() -> None:
    stored = [StoredFreeze(pid=1, chat="7", until=12.2)]
    limited = [call(1, 10.0), call(1, 10.2, until=12.2)]
    assert list(early_calls([*limited, call(2, 12.3)], stored)) == []
    assert len(list(early_calls([*limited, call(2, 12.0)], stored))) == 1
    assert list(early_calls([call(1, 9.0), *limited], stored)) == []


def test_two_turns_of_one_chat_at_the_same_time_overlap() -> None:
    def begun(token: str, pid: int = 1) -> PauseRecord:
        return PauseRecord(pid=pid, token=token)

    def ended(token: str) -> PauseRecord:
        return PauseRecord(pid=1, token=token, ended=True)

    assert list(overlaps([begun("q7x0"), begun("q8x0"), ended("q7x0"), begun("q7x1")])) == []
    assert list(overlaps([begun("q7x0"), begun("q7x1", pid=2)])) == [], "the first was killed"
    assert len(list(overlaps([begun("q7x0"), begun("q7x1")]))) == 1
