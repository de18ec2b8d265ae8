"""The names of platforms are checked."""

import pytest

from hermes.app.application import Application
from hermes.entry.cli.platform_names import UnknownPlatform, check_platform


def test_a_similar_name_is_suggested_for_an_unknown_platform() -> None:
    check_platform(Application(), "telegram")
    with pytest.raises(UnknownPlatform, match=r"no platform 'telegrm'.*telegram"):
        check_platform(Application(), "telegrm")
    with pytest.raises(UnknownPlatform, match="no platform 'xyz': there are matrix, telegram"):
        check_platform(Application(), "xyz")
