"""The error that the parser raises is one of our errors."""

from hermes.core.danger.syntax import NotParsed
from hermes.types.errors import HermesError


def test_the_error_of_the_parser_is_one_of_ours() -> None:
    assert issubclass(NotParsed, HermesError)
