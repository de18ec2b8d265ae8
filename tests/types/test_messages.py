"""A message is divided into parts: the pieces of its text, and each attachment at its position."""

from hypothesis import given
from hypothesis import strategies as st

from hermes.types.messages import Attachment, UserMessage

CAT = Attachment(kind="image", path="cat", name="cat.png")


def placed(at: int) -> Attachment:
    return Attachment(kind="audio", path=str(at), at=at)


def test_a_message_with_only_text_has_one_part() -> None:
    assert UserMessage(text="\n hi").parts == ("\n hi",)
    assert UserMessage(text="hi").described == "hi"


def test_attachments_are_at_the_position_where_they_were_sent() -> None:
    message = UserMessage(text="one\ntwo", attachments=(placed(3), CAT, placed(99)))
    assert message.parts == (CAT, "one", placed(3), "two", placed(99))
    assert message.described == "[image cat.png]\none\n[audio]\ntwo\n[audio]"


def test_a_message_may_have_no_text() -> None:
    assert UserMessage(text="", attachments=(CAT,)).parts == (CAT,)


@given(st.text(), st.lists(st.integers(0, 20).map(placed), max_size=4))
def test_the_parts_contain_every_character_and_every_attachment(
    text: str, attachments: list[Attachment]
) -> None:
    parts = UserMessage(text=text, attachments=tuple(attachments)).parts
    said = "".join(part for part in parts if isinstance(part, str))
    assert said.replace("\n", "") == text.replace("\n", "")
    found = [part for part in parts if isinstance(part, Attachment)]
    assert sorted(one.at for one in found) == sorted(one.at for one in attachments)
