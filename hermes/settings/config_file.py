"""Edits the text of config.yaml, and keeps its comments, order, quotes and layout."""

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from itertools import takewhile
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from ruamel.yaml.comments import CommentedMap

WIDEST = 1_000_000
"""Line width at which ruamel wraps lines. It is so large that no line is wrapped."""

_COMMENT = re.compile(r"(?m)(?:^|[ \t])(#.*)$")


def edits(text: str, old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    """Yields candidate texts for a file that contains `old` and should contain `new`.

    The first text changes as few lines as possible. The second text has ruamel's layout, and the
    last text has no comments. Some YAML can't be edited as text, so the caller must use the first
    candidate that YAML parses as `new`.
    """
    # ruamel is slow to import, and only the commands that change settings need it.
    from ruamel.yaml import YAML  # noqa: PLC0415
    from ruamel.yaml.comments import CommentedMap  # noqa: PLC0415
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    editor = YAML()
    editor.preserve_quotes = True
    editor.width = WIDEST
    editor.allow_duplicate_keys = True

    def written() -> list[str]:
        stream = io.StringIO()
        editor.dump(tree, stream)
        return stream.getvalue().splitlines()

    try:
        tree = editor.load(text)
    except YAMLError:
        tree = None
    if not old:
        yield _ended(text) + dumped(new)
    if isinstance(tree, CommentedMap):
        before = written()
        _change(tree, old, new, top=True)
        after = written() if new else []
        lines = _patched(text.splitlines(), before, after)
        # The last line of the file may lack its line break.
        unended = after[-1:] == before[-1:] and not text.endswith("\n")
        yield "\n".join(lines) + ("" if unended or not lines else "\n")
        yield "".join(f"{line}\n" for line in after)
    yield dumped(new)


def dumped(raw: Mapping[str, object]) -> str:
    """Returns the values as the YAML text of a new file."""
    text: str = yaml.safe_dump(dict(raw), sort_keys=False, allow_unicode=True, width=100)
    return text


def lost_comments(before: str, after: str) -> bool:
    """Returns whether `after` lacks comments that `before` contains."""
    return bool(Counter(_COMMENT.findall(before)) - Counter(_COMMENT.findall(after)))


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _change(
    tree: "CommentedMap",
    old: Mapping[str, object],
    new: Mapping[str, object],
    *,
    top: bool = False,
) -> None:
    """Changes the tree, which contains `old`, so that it contains `new`."""
    keys = _keys(tree)
    for name in keys.keys() - new.keys():
        del tree[keys[name]]
    for name, value in new.items():
        below = tree.get(keys.get(name, name))
        if name not in keys:
            # In a section, a new entry comes first, because a comment at the end of the section may
            # belong to the next section.
            tree.insert(len(tree) if top else 0, _node(name), _node(value))
        elif isinstance(below, type(tree)) and isinstance(value, Mapping):
            before = old.get(name)
            _change(below, before if isinstance(before, Mapping) else {}, value)
        elif value != old.get(name):
            if isinstance(below, str) and "\n" in below:
                # If the old value is a text of several lines, ruamel has attached the comment of
                # the next entry to this entry. Without this line, ruamel would write the comment
                # after the new value, too.
                tree.ca.items.pop(keys[name], None)
            tree[keys[name]] = _node(value)


def _keys(tree: "CommentedMap") -> dict[str, object]:
    """Maps each key, as text, to the key itself. In the tree a key may be a number, but `read_yaml`
    returns all keys as text."""
    return {str(key): key for key in tree}


def _node(value: object, *, in_list: bool = False) -> object:
    """Returns the value as a node that PyYAML, which implements YAML 1.1, reads back unchanged."""
    from ruamel.yaml.comments import CommentedMap, CommentedSeq  # noqa: PLC0415  # already imported
    from ruamel.yaml.scalarstring import (  # noqa: PLC0415
        DoubleQuotedScalarString,
        SingleQuotedScalarString,
    )

    match value:
        case Mapping():
            return CommentedMap((_node(name), _node(one)) for name, one in value.items())
        case list():
            items = CommentedSeq(_node(one, in_list=True) for one in value)
            items.fa.set_flow_style()
            return items
        case str() if not value.isprintable():
            return DoubleQuotedScalarString(value)
        case str() if not _is_plain(value, in_list=in_list):
            return SingleQuotedScalarString(value)
        case _:
            return value


def _is_plain(value: str, *, in_list: bool) -> bool:
    """Returns whether YAML reads the value unchanged if it has no quotes."""
    text, wanted = (f"[{value}]", [value]) if in_list else (value, value)
    try:
        return bool(yaml.safe_load(text) == wanted)
    except (yaml.YAMLError, ValueError):  # for example a date that does not exist
        return False


def _patched(lines: list[str], before: list[str], after: list[str]) -> list[str]:
    """Applies the differences between `before` and `after` to the lines of the file.

    `before` has the content of the file in ruamel's layout. If a change can't be located in the
    lines, the result is `after`.
    """
    places = _places(lines, before)
    result: list[str] = []
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, start, end, new_start, new_end in matcher.get_opcodes():
        first, last = places[start], places[end]
        if first is None or last is None:
            return after
        if kind == "equal":
            result += lines[first:last]
            continue
        # ruamel treats a comment as part of the entry before it, so the new lines may lack the
        # comments before and after the change. These comments are taken from the old lines.
        head = _comments(lines[first:last])
        tail = _comments(reversed(lines[first + len(head) : last]))
        new = after[new_start:new_end]
        shift = 0
        for at in (start, start - 1):
            place = places[at] if 0 <= at < len(before) else None
            if new and place is not None and _indent(before[at]) == _indent(new[0]):
                shift = _indent(lines[place]) - _indent(before[at])
                break
        result += [*head, *(_moved(line, shift) for line in new), *reversed(tail)]
    return result


def _places(lines: list[str], before: list[str]) -> list[int | None]:
    """Returns for each line of `before` its index in `lines`, or None if the line is not found. The
    last value is the index of the end of `lines`."""
    if len(lines) == len(before):
        return [*range(len(lines) + 1)]
    places: list[int | None] = [None] * (len(before) + 1)
    bare = ["".join(line.split()) for line in lines]
    matcher = SequenceMatcher(
        None, ["".join(line.split()) for line in before], bare, autojunk=False
    )
    for at, place, size in matcher.get_matching_blocks():
        places[at : at + size + 1] = range(place, place + size + 1)
    return places


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _moved(line: str, columns: int) -> str:
    return " " * (_indent(line) + columns) + line.lstrip(" ")


def _comments(lines: Iterable[str]) -> list[str]:
    """Returns the comments before the first line that is neither a comment nor empty."""
    found = takewhile(lambda line: not line.strip() or line.lstrip().startswith("#"), lines)
    return [line for line in found if line.strip()]
