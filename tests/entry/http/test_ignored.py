"""The header `X-Hermes-Ignored` names the fields of a request that were ignored."""

import pytest

from hermes.entry.http.ignored import IGNORED_HEADER, MOST_NAMES, ignored_header


def test_there_is_no_header_if_nothing_was_ignored() -> None:
    assert ignored_header([]) == {}


def test_names_are_listed_once_and_in_order() -> None:
    assert ignored_header(["b", "messages.name", "b"]) == {IGNORED_HEADER: "b, messages.name"}


@pytest.mark.parametrize("name", ["", "a b", "a,b", "é", "a\r\nx: y", "x" * 65, "a\x00"])
def test_a_strange_name_can_not_forge_a_header(name: str) -> None:
    assert ignored_header(["a", name]) == {IGNORED_HEADER: "a, ?"}


def test_a_long_list_is_cut() -> None:
    value = ignored_header([f"field{number}" for number in range(MOST_NAMES + 5)])[IGNORED_HEADER]
    assert value.endswith(f"field{MOST_NAMES - 1}, and 5 more")
    assert len(value) < 4096
