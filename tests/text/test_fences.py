import pytest

from hermes.text.fences import fence_at, fences


@pytest.mark.parametrize(
    ("text", "first", "inside", "last"),
    [
        ("a\n```py\nx\n```\nb", "```py\n", "x\n", "```"),
        ("- a\n  ~~~\n  x\n  ~~~~\n- b", "  ~~~\n", "  x\n", "  ~~~~"),
        ("> ```\n> x\n> ```\nb", "> ```\n", "> x\n", "> ```"),
        ("1. ```\n   x", "1. ```\n", "   x", ""),
        ("a\r\n```\r\nx\r\n```\r\n", "```\r\n", "x\r\n", "```\r"),
    ],
)
def test_a_block_is_found_with_its_lines(text: str, first: str, inside: str, last: str) -> None:
    [block] = fences(text)
    assert text[block.start : block.content] == first
    assert text[block.content : block.closer] == inside
    assert text[block.closer : block.end] == last


def test_what_only_looks_like_a_block_is_none() -> None:
    assert fences("a ```b``` c\n\n    ```\n    x") == []


def test_a_place_is_in_a_block_past_its_start_and_before_its_end() -> None:
    text = "a\n```\nx\n```\nb"
    blocks = fences(text)
    hit = [place for place in range(len(text)) if fence_at(blocks, place)]
    assert hit == list(range(3, 11))
    assert [place for place in hit if blocks[0].open_at(place)] == [7, 8]
