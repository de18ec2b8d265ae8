"""The policy for previews can't be changed after it was created."""

import pytest

from hermes.streaming.policy import StreamingPolicy


def test_the_fields_of_a_policy_can_not_be_changed() -> None:
    policy = StreamingPolicy()
    with pytest.raises(AttributeError):
        policy.edit_interval = 0.0
