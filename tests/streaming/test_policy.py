"""The policy of previews is immutable."""

import pytest

from hermes.streaming.policy import StreamingPolicy


def test_a_policy_is_immutable() -> None:
    policy = StreamingPolicy()
    with pytest.raises(AttributeError):
        policy.edit_interval = 0.0
