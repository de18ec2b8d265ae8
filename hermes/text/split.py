"""Cuts Markdown into messages of a platform's size without breaking its code blocks."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator

from hermes.text.fences import Fence, fence_at, fences
from hermes.types.value import Value

Measure = Callable[[str], int]
"""Counts a text in a platform's units: one or more a character, never fewer for a longer text."""

_BLOCK = re.compile(r"\n(?=[ \t]*\n|[ \t>]*(?:```|~~~)|#{1,6} )|(?<=```)\n|(?<=~~~)\n")
_LINE = re.compile(r"\n")
_SENTENCE = re.compile(r"(?<=[.!?…])(?=\s)|(?<=[。！？])")
_WORD = re.compile(r"(?<=[^\s>])\s")
_SPACE = re.compile(r"\s*")
_LINE_END = re.compile(r"(?:\r\n?|\n)?")
_AHEAD = 8
"""Characters past a cut that the patterns may look at."""
_GRAPHEME = 32
"""Code points that are kept together at most."""


class Part(Value):
    """One message: a piece of the text between the fence lines that were added to it."""

    text: str
    opening: str = ""
    closing: str = ""

    def __str__(self) -> str:
        return self.opening + self.text + self.closing


def utf16_units(text: str) -> int:
    """The length of a text as Telegram and others count it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def split(text: str, limit: int, measure: Measure = len) -> list[str]:
    """Parts of at most `limit` units; only a character that is larger by itself exceeds it.

    The parts hold the whole text in order, but for white space at the cuts, and the lines
    that close a code block in one part and open it again in the next.
    """
    if limit < 1:
        raise ValueError(f"a part needs room for a character: limit is {limit!r}")
    if text and measure(text) <= limit:
        return [text]
    return [str(part) for part in parts(text, limit, measure)]


def parts(text: str, limit: int, measure: Measure = len) -> Iterator[Part]:
    """What `split` returns, with what was added told from what was there."""
    return _Splitter(text, limit, measure).parts()


class _Splitter:
    def __init__(self, text: str, limit: int, measure: Measure) -> None:
        self._text = text
        self._limit = limit
        self._measure = measure
        # A block whose own lines would fill the parts is cut like any other text.
        self._blocks = [block for block in fences(text) if self._frame(block) <= limit // 2]

    def parts(self) -> Iterator[Part]:
        place = self._resume(0)
        while place < len(self._text):
            block = self._open_block(place)
            opening = block.opening(self._text[place - 1] not in "\r\n") if block else ""
            cut = self._cut(place, opening)
            body = self._body(place, cut)
            if body.strip():
                yield Part(text=body, opening=opening, closing=self._closing(place, cut))
            place = self._resume(cut)

    def _frame(self, block: Fence) -> int:
        first = self._measure(self._text[block.start : block.content])
        return max(first, self._measure(block.opening(True))) + self._measure(block.closing(0))

    def _open_block(self, place: int) -> Fence | None:
        block = fence_at(self._blocks, place)
        return block if block and block.open_at(place) else None

    def _closing(self, place: int, cut: int) -> str:
        block = self._open_block(cut)
        return block.closing(place) if block else ""

    def _resume(self, cut: int) -> int:
        """Where the next part begins: white space is dropped, in code just the line's end."""
        found = (_LINE_END if self._open_block(cut) else _SPACE).match(self._text, cut)
        assert found, "both match nothing too"
        return found.end()

    def _body(self, place: int, cut: int) -> str:
        body = self._text[place:cut]
        block = fence_at(self._blocks, place)
        if block and block.margin and not block.quoted:
            inside = block.end - place
            indent = re.compile(rf"(?m)^ {{1,{len(block.margin)}}}")
            body = indent.sub("", body[:inside]) + body[inside:]
        return body.rstrip("\r\n") if self._open_block(cut) else body.rstrip()

    def _cut(self, place: int, opening: str) -> int:
        farthest = self._farthest(place, opening)
        if farthest == len(self._text):
            return farthest
        early = place + (farthest - place) // 4
        choices = [(_BLOCK, early), (_LINE, early), (_SENTENCE, early), (_WORD, place)]
        if self._open_block(farthest):
            # A short part is better than a broken line of code.
            choices[2] = (_LINE, place)
        for boundary, floor in choices:
            found = boundary.finditer(self._text, floor + 1, farthest + _AHEAD)
            for cut in reversed([match.start() for match in found if match.start() <= farthest]):
                if self._cuttable(place, cut, opening, boundary):
                    return cut
        return _before_grapheme(self._text, place, farthest)

    def _cuttable(self, place: int, cut: int, opening: str, boundary: re.Pattern[str]) -> bool:
        block = fence_at(self._blocks, cut)
        if block is None:
            return True
        if boundary is _BLOCK or not block.open_at(cut):
            return False
        whole = opening + self._text[place:cut] + block.closing(place)
        return self._measure(whole) <= self._limit

    def _farthest(self, place: int, opening: str) -> int:
        """The last place to cut at, whatever stands there."""
        farthest = self._reach(place, opening, self._limit)
        block = fence_at(self._blocks, farthest)
        if block is None or place >= block.closer:
            return farthest
        room = self._limit - self._measure(block.closing(place))
        farthest = min(self._reach(place, opening, room), block.closer)
        if farthest > block.content:
            return farthest
        return block.start if block.start > place else min(block.content + 1, len(self._text))

    def _reach(self, place: int, opening: str, room: int) -> int:
        ends = range(place + 1, min(len(self._text), place + self._limit) + 1)
        if self._measure(opening + self._text[place : ends[-1]]) <= room:
            return ends[-1]
        fitting = bisect_right(
            ends, room, key=lambda end: self._measure(opening + self._text[place:end])
        )
        return place + max(fitting, 1)


def _before_grapheme(text: str, place: int, cut: int) -> int:
    """The cut, moved back so that it goes through nothing that is seen as one character."""
    whole = cut
    while _joined(text[whole - 1], text[whole]):
        whole -= 1
        if whole <= max(place, cut - _GRAPHEME):
            return cut
    return whole


def _joined(before: str, after: str) -> bool:
    if "\ud800" <= before <= "\udbff":
        return "\udc00" <= after <= "\udfff"
    skin = "\U0001f3fb" <= after <= "\U0001f3ff"
    return skin or "\u200d" in (before, after) or unicodedata.category(after)[0] == "M"
