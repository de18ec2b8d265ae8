"""A memory file consists of entries, which can be added, replaced and removed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.state.entries import BETWEEN, EntryEdit, edited, entries_of, within
from hermes.types.errors import ToolFailed

TEA, RUNS = "Likes tea", "Runs on Sundays\nin the park"
lines = st.text(alphabet=st.sampled_from("ab §\n\r\u2028 "), max_size=12)


def add(content: str) -> EntryEdit:
    return EntryEdit(action="add", content=content)


def replace(old: str, content: str) -> EntryEdit:
    return EntryEdit(action="replace", old=old, content=content)


def remove(old: str) -> EntryEdit:
    return EntryEdit(action="remove", old=old)


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("", ()),
        ("\n§\n \n§\n", ()),
        (f"{TEA}\n§\n{RUNS}\n", (TEA, RUNS)),
        ("Likes tea\r\n  § \r\nRuns on Sundays\r\nin the park", (TEA, RUNS)),
        ("costs 5 §\n§\nsee § 7", ("costs 5 §", "see § 7")),
        (f"{TEA}\n§\n{TEA}", (TEA,)),
        ("one\n\ntwo", ("one\n\ntwo",)),
    ],
)
def test_a_line_with_the_separator_separates_two_entries(
    text: str, entries: tuple[str, ...]
) -> None:
    assert entries_of(text) == entries


@given(st.lists(lines))
def test_added_entries_are_read_again(contents: list[str]) -> None:
    entries: tuple[str, ...] = ()
    for content in contents:
        try:
            entries = edited(entries, [add(content)])
        except ToolFailed:
            assert not content.strip() or "§" in content
    assert entries_of(BETWEEN.join(entries)) == entries


edits = st.one_of(st.builds(add, lines), st.builds(replace, lines, lines), st.builds(remove, lines))


@given(st.lists(lines), st.lists(edits, max_size=4))
def test_a_change_can_be_repeated_unless_it_only_removes_entries(
    before: list[str], batch: list[EntryEdit]
) -> None:
    entries = entries_of(BETWEEN.join(before))
    try:
        after = edited(entries, batch)
    except ToolFailed:
        return
    if all(edit.content.strip() in after for edit in batch if edit.action != "remove"):
        try:
            assert set(edited(after, batch)) == set(after)
        except ToolFailed:
            assert {edit.action for edit in batch} == {"remove"}


def test_an_entry_is_added_once() -> None:
    assert edited([TEA], [add(f"  {RUNS}\n")]) == (TEA, RUNS)
    assert edited([TEA, RUNS], [add(TEA)]) == (TEA, RUNS)


def test_an_entry_can_be_selected_by_a_part_of_its_text() -> None:
    assert edited([TEA, RUNS], [replace("tea", "Likes coffee")]) == ("Likes coffee", RUNS)
    assert edited([TEA, RUNS], [remove("Sundays\nin")]) == (TEA,)


def test_a_repeated_replacement_changes_nothing() -> None:
    after = edited([TEA, RUNS], [replace("tea", "Likes green tea")])
    assert edited(after, [replace("tea", "Likes green tea")]) == after
    after = edited([TEA, RUNS], [remove("tea"), add("Likes coffee")])
    assert edited(after, [remove("tea"), add("Likes coffee")]) == after


def test_later_edits_of_a_change_see_the_earlier_edits() -> None:
    batch = [add("Has a dog"), replace("dog", "Has a cat"), remove("tea")]
    assert edited([TEA], batch) == ("Has a cat",)


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (remove("x"), f"No entry contains 'x'. The entries:\n{TEA}{BETWEEN}{RUNS}"),
        (replace("x", "y"), "No entry contains 'x'"),
        (remove("a"), "2 entries contain 'a': give a longer part"),
        (remove(" "), "'old'"),
        (replace("", "y"), "'old'"),
        (replace("tea", " \n"), "'content'"),
        (add(""), "'content'"),
        (add("one\n§\ntwo"), "separates entries"),
        (add("§"), "separates entries"),
    ],
)
def test_the_error_for_an_impossible_edit_says_what_to_do(edit: EntryEdit, why: str) -> None:
    with pytest.raises(ToolFailed) as failure:
        edited([TEA, RUNS], [edit])
    assert why in str(failure.value)


def test_the_result_says_if_nothing_was_changed() -> None:
    with pytest.raises(ToolFailed, match="at least one"):
        edited([TEA], [])
    with pytest.raises(ToolFailed, match="There are no entries"):
        edited([], [remove("x")])


def test_a_long_list_of_entries_is_shown_up_to_a_limit() -> None:
    assert within([TEA, RUNS], "MEMORY.md", 99) == f"{TEA}{BETWEEN}{RUNS}"
    remark = "[The rest of MEMORY.md is over its limit of 20 characters.]"
    assert within([TEA, RUNS], "MEMORY.md", 20) == f"{TEA}{BETWEEN}{remark}"
    assert within([RUNS], "MEMORY.md", 20).startswith(f"{RUNS[:20]}{BETWEEN}[")
