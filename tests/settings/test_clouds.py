"""The settings of providers of remote sandboxes hide the keys."""

import msgspec
import pytest

from hermes.settings.clouds import DaytonaSettings, ModalSettings
from hermes.types.value import Value


@pytest.mark.parametrize(
    "made",
    [ModalSettings(token_secret="the-secret"), DaytonaSettings(api_key="the-secret")],
    ids=lambda one: type(one).__name__,
)
def test_a_key_is_never_in_a_repr(made: ModalSettings | DaytonaSettings) -> None:
    assert "the-secret" not in repr(made) + repr(made.account())
    assert made.account().key == "the-secret"


@pytest.mark.parametrize("section", [ModalSettings, DaytonaSettings])
def test_the_defaults_are_valid(section: type[Value]) -> None:
    made = section()
    assert msgspec.convert(msgspec.to_builtins(made), section) == made


def test_a_sandbox_needs_a_processor() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"cpus": 0}, ModalSettings)
