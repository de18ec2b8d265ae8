"""Fields that several wire formats share are encoded in the same way."""

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from hermes.core.models.request_fields import (
    answer_limit,
    bearer,
    cache_name,
    call_arguments,
    data_url,
    extra_fields,
    file_name,
    system_text,
    user_parts,
    user_text,
)
from hermes.testing.histories import arguments
from hermes.testing.upstream import PROVIDER_KEY, choice_of, request_to
from hermes.types.identity import CallId
from hermes.types.messages import Attachment, Sampling, ToolCall, UserMessage
from hermes.types.profile import Quirks

REQUEST = request_to(choice_of("chat"))


def call(written: str) -> ToolCall:
    return ToolCall(id=CallId("t_1_0"), name="look", arguments=written)


@given(arguments)
def test_arguments_are_sent_as_an_object(written: str) -> None:
    fields = msgspec.json.decode(call_arguments(call(written)), type=dict[str, object])
    if "invalid_json" in fields:
        assert fields == {"invalid_json": written}
    else:
        assert call_arguments(call(written)) == written


@pytest.mark.parametrize("written", ["{broken", "[1]", "", '{"a":"\\ud800"}', '{"a":' + "[" * 9999])
def test_arguments_that_are_not_an_object_are_sent_as_text(written: str) -> None:
    assert msgspec.json.decode(call_arguments(call(written))) == {"invalid_json": written}


def test_the_limit_of_the_request_takes_precedence_over_the_limit_of_the_model() -> None:
    assert answer_limit(REQUEST) is None
    limited = replace(REQUEST, choice=replace(REQUEST.choice, max_tokens=7))
    assert answer_limit(limited) == 7
    assert answer_limit(replace(limited, sampling=Sampling(max_tokens=5))) == 5


def test_ephemeral_text_follows_the_prompt() -> None:
    assert system_text(REQUEST) == "be brief"
    assert system_text(replace(REQUEST, ephemeral="today")) == "be brief\n\ntoday"
    assert system_text(replace(REQUEST, system="", ephemeral="today")) == "today"


def test_the_cache_name_contains_the_conversation_and_the_model() -> None:
    assert cache_name(REQUEST) == ""
    named = replace(REQUEST, conversation="c")
    other = replace(named, choice=replace(named.choice, model="other"))
    assert len({cache_name(named), cache_name(other)}) == 2


def test_the_name_of_the_sender_is_sent_in_a_shared_session() -> None:
    assert user_text(UserMessage(text="hi")) == "hi"
    assert user_text(UserMessage(text="hi", sender="Ann")) == "[Ann] hi"


def test_the_key_is_a_bearer_token() -> None:
    assert bearer(REQUEST.choice) == {"Authorization": f"Bearer {PROVIDER_KEY}"}
    assert bearer(replace(REQUEST.choice, api_key="")) == {}


def test_extra_fields_are_encoded_before_the_other_fields() -> None:
    assert extra_fields(REQUEST.choice) == b""
    quirks = Quirks(extra_body='{"a":{"b":1},"c":2}')
    assert extra_fields(replace(REQUEST.choice, quirks=quirks)) == b'"a":{"b":1},"c":2,'


def test_a_data_url_is_valid_json_for_any_media_type() -> None:
    odd = Attachment(kind="image", path="a", media_type='image/"png')
    url = data_url(replace(REQUEST, media={"a": b"AAAA"}), odd)
    assert msgspec.json.decode(url) == 'data:image/"png;base64,AAAA'


def test_a_file_without_a_name_gets_one() -> None:
    assert file_name(Attachment(kind="file", path="a", name='"x".pdf')) == b'"\\"x\\".pdf"'
    assert file_name(Attachment(kind="file", path="a")) == b'"file"'


def test_the_name_of_the_sender_precedes_the_first_part() -> None:
    first, last = Attachment(kind="image", path="a"), Attachment(kind="image", path="a", at=2)
    said = UserMessage(text="hi", sender="Ann", attachments=(last,))
    assert user_parts(said) == ["[Ann] hi", last]
    assert user_parts(replace(said, attachments=(first,))) == ["[Ann]", first, "hi"]
    assert user_parts(replace(said, sender=None)) == ["hi", last]
