"""Text is broken between words."""

from hypothesis import given
from hypothesis import strategies as st

from hermes.text.wrapping import StreamWrapper, hang, wrap_words


def test_a_sentence_is_broken_between_words() -> None:
    text = "No model is configured: set a key.\nTry again."
    assert wrap_words(text, 20) == "No model is\nconfigured: set a\nkey.\nTry again."
    assert wrap_words(text, 40) == text


def test_the_second_line_of_a_row_begins_under_its_second_column() -> None:
    row = "model      gpt-5.6  (environment HERMES_MODEL)"
    assert wrap_words(row, 36) == "model      gpt-5.6  (environment\n           HERMES_MODEL)"


def test_the_other_columns_of_a_wrapped_row_are_not_aligned() -> None:
    row = "groq           no key (set GROQ_API_KEY)           Groq"
    assert wrap_words(row, 44) == "groq           no key (set GROQ_API_KEY)\n               Groq"
    assert wrap_words(row, 36) == ("groq           no key (set\n               GROQ_API_KEY)  Groq")


def test_a_wide_first_column_does_not_narrow_the_rest() -> None:
    assert wrap_words("a-very-long-name  one two three", 20) == "a-very-long-name\none two three"


def test_commands_and_long_words_stay_whole() -> None:
    command = "  curl -sN http://127.0.0.1:8642/v1/chat/completions"
    assert wrap_words(command, 20) == command
    assert wrap_words("see /home/someone/.hermes/config.yaml", 20) == (
        "see\n/home/someone/.hermes/config.yaml"
    )


def test_a_text_is_indented_to_the_right_of_its_label() -> None:
    assert hang("ok  disk  ", "3 GB are free", None) == "ok  disk  3 GB are free"
    assert hang("ok  disk  ", "3 GB of the disk are free now", 30) == (
        "ok  disk  3 GB of the disk are\n          free now"
    )


def test_a_text_begins_on_the_next_line_if_its_label_is_wide() -> None:
    assert hang("warning  permissions  ", "others  can read the files", 26) == (
        "warning  permissions\n    others  can read the\n    files"
    )


def streamed(pieces: list[str], columns: int) -> str:
    wrapper = StreamWrapper(columns)
    return "".join(map(wrapper.feed, pieces)) + wrapper.flush()


def test_a_stream_is_broken_between_words() -> None:
    assert streamed(["I can he", "lp you", " with a task."], 10) == "I can help\nyou with a\ntask."
    assert streamed(["one\ntwo three"], 9) == "one\ntwo three"


@given(st.text("ab \n", max_size=60), st.integers(1, 20), st.integers(1, 7))
def test_a_stream_loses_no_word_and_fills_no_line_too_far(
    text: str, columns: int, size: int
) -> None:
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    shown = streamed(pieces, columns)
    assert shown.split() == text.split()
    for line in shown.split("\n"):
        assert len(line.rstrip()) <= columns or len(line.split()) == 1
