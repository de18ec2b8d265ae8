"""The cache of encoded messages returns the same bytes as the encoder."""

from hypothesis import given
from hypothesis import strategies as st

from hermes.core.models import message_cache
from hermes.core.models.message_cache import (
    CACHED_BYTES,
    FEWEST_CACHED_MESSAGES,
    EncodedMessageCache,
    encode_all,
)
from hermes.types.messages import AssistantMessage, Message, UserMessage

texts = st.text(max_size=3)
messages = st.builds(lambda text: UserMessage(text=text), texts) | st.builds(
    lambda text: AssistantMessage(text=text), texts
)


def encoded(before: Message | None, message: Message) -> bytes:
    return f"{type(before).__name__}>{message!r}".encode()


def plain(said: list[Message]) -> bytes:
    return encode_all(None, said, encoded)


LONG: list[Message] = [UserMessage(text=str(number)) for number in range(FEWEST_CACHED_MESSAGES)]


@given(
    st.lists(
        st.tuples(st.integers(0, FEWEST_CACHED_MESSAGES + 9), st.lists(messages, max_size=4)),
        max_size=6,
    )
)
def test_the_encoded_bytes_do_not_depend_on_earlier_requests(
    calls: list[tuple[int, list[Message]]],
) -> None:
    cache, said = EncodedMessageCache(), LONG
    for cut, more in calls:
        said = [*said[:cut], *LONG[cut:], *more]
        assert cache.encoded("c", said, encoded) == plain(said)


def test_each_message_is_encoded_together_with_the_message_before_it() -> None:
    first, second = LONG[:2]
    assert encode_all(None, [first, second], encoded) == encoded(None, first) + encoded(
        first, second
    )


def test_only_new_messages_are_encoded() -> None:
    count = 0

    def counting(before: Message | None, message: Message) -> bytes:
        nonlocal count
        count += 1
        return encoded(before, message)

    cache = EncodedMessageCache()
    cache.encoded("c", LONG, counting)
    again: list[Message] = [
        UserMessage(text=str(number)) for number in range(FEWEST_CACHED_MESSAGES + 2)
    ]
    assert cache.encoded("c", again, counting) == plain(again)
    assert count == FEWEST_CACHED_MESSAGES + 2


def test_each_conversation_is_cached_separately_if_it_has_a_name() -> None:
    cache = EncodedMessageCache()
    other: list[Message] = [UserMessage(text="other"), *LONG]
    assert cache.encoded("one", LONG, encoded) == plain(LONG)
    assert cache.encoded("two", other, encoded) == plain(other)
    assert cache.encoded("", other, encoded) == plain(other)
    assert set(cache._kept) == {"one", "two"}


def test_the_size_of_the_cache_is_limited() -> None:
    big: list[Message] = [
        UserMessage(text="x" * (CACHED_BYTES // FEWEST_CACHED_MESSAGES // 3 + 1)) for _ in LONG
    ]
    cache = EncodedMessageCache()
    for name in "abcdef":
        cache.encoded(name, big, lambda _before, message: message.text.encode())
    assert cache._size <= message_cache.CACHED_BYTES
    assert list(cache._kept) == ["e", "f"]
