"""Holes are characters that replace text which is known only when the command runs."""

from hermes.core.danger import holes


def test_text_without_holes_is_known() -> None:
    assert holes.is_known("")
    assert holes.is_known("a b")
    assert not holes.is_known(f"a{holes.PLAIN_NAME}")


def test_an_unknown_plain_name_can_not_contain_other_characters() -> None:
    assert not holes.is_open(f"log-{holes.PLAIN_NAME}")
    assert holes.is_open(f"log-{holes.ONE_WORD}")


def test_quotes_keep_unknown_text_together() -> None:
    assert holes.quoted(holes.ANYTHING) == holes.ONE_WORD
    assert holes.unquoted(holes.ONE_WORD) == holes.ANYTHING


def test_derived_text_stays_secret_and_untrusted() -> None:
    assert holes.derived("a", "b") == holes.ANYTHING
    assert holes.derived(f"x{holes.SECRET_TEXT}", holes.PLAIN_NAME) == holes.SECRET_TEXT
    both = holes.derived(holes.DOWNLOAD, holes.SECRET_TEXT)
    assert set(both) == {holes.DOWNLOAD, holes.SECRET_TEXT}


def test_text_is_only_unknown_if_it_has_nothing_else() -> None:
    assert holes.is_only_unknown(f" {holes.ANYTHING}\n")
    assert not holes.is_only_unknown(" ")
    assert not holes.is_only_unknown(f"ls {holes.ANYTHING}")


def test_a_reader_sees_an_ellipsis() -> None:
    assert holes.shown(f"a{holes.ANYTHING}{holes.SECRET_TEXT}b") == "a……b"
