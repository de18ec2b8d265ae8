"""Computes what programs such as `echo` and `base64` would print, as far as their arguments and
input are known. Nothing is executed."""

import base64
import binascii
import codecs
import re
from collections.abc import Callable, Sequence

from hermes.core.danger.holes import (
    ANYTHING,
    ENDLESS,
    HOLES,
    ONE_WORD,
    PLAIN_NAME,
    SECRET_TEXT,
    derived,
    is_known,
)
from hermes.core.danger.invocation import Invocation
from hermes.core.danger.options import names
from hermes.core.danger.paths import classify
from hermes.core.danger.redirections import file_text
from hermes.core.danger.words import unescape

MAX_DECODED = 100_000
"""Length of the longest text that is decoded, in characters."""

_FORMAT = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?([a-zA-Z%])")
_RANGE = re.compile(r"(.)-(.)", re.DOTALL)
_CLASSES = {
    "[:lower:]": "abcdefghijklmnopqrstuvwxyz",
    "[:upper:]": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "[:digit:]": "0123456789",
    "[:space:]": " \t\n",
}


def echo_output(call: Invocation) -> str:
    """Returns the output of `echo`."""
    arguments = list(call.arguments)
    escapes = False
    while arguments and re.fullmatch(r"-[neE]+", arguments[0]):
        escapes = escapes or "e" in arguments.pop(0)
    text = " ".join(arguments)
    return (unescape(text) if escapes else text) + "\n"


def formatted(arguments: Sequence[str]) -> str:
    """Returns the output of `printf`."""
    if not arguments:
        return ""
    template, *values = [one for one in arguments if one != "--"] or [""]
    template = unescape(template)
    output = ""
    remaining = list(values)
    while True:

        def value(found: re.Match[str]) -> str:
            if found[1] == "%":
                return "%"
            argument = remaining.pop(0) if remaining else ""
            return unescape(argument) if found[1] == "b" else _number(found[1], argument)

        before = len(remaining)
        output += _FORMAT.sub(value, template)
        if not remaining or len(remaining) == before or len(output) > MAX_DECODED:
            return output


def _number(kind: str, argument: str) -> str:
    if kind not in "xXo" or not argument.isdigit() or len(argument) > 15:
        return argument[:1] if kind == "c" else argument
    return format(int(argument), kind)


def text_of(call: Invocation, operands: Sequence[str]) -> str:
    """Returns the text that a filter reads: the content of the files that are its operands, or its
    input if it has no operands."""
    files = [one for one in operands if one != "-"]
    if not files:
        return call.stdin if call.stdin is not None else ANYTHING
    return "".join(
        (call.stdin or "") if call.path(one) == "/dev/stdin" else file_text(one, call.scope)
        for one in files
    )


def cat_output(call: Invocation) -> str:
    """Returns the output of `cat` and of other programs that copy their input."""
    return text_of(call, call.options(names("n c lines bytes")).operands)


def head_output(call: Invocation) -> str:
    """Returns the output of `head`, which ends even if its input has no end."""
    parsed = call.options(names("n c lines bytes"))
    text = text_of(call, parsed.operands)
    sizes = parsed.values("c", "bytes")
    if any(is_huge(size) for size in sizes):
        return text
    return text.replace(ENDLESS, ANYTHING)


def is_huge(size: str) -> bool:
    """Returns whether a size is 10 GB or more, which may fill a disk."""
    return re.fullmatch(r"\d{2,}\s*G\w*|\d+\s*[TPE]\w*|\d{11,}|\d{5,}M\w*", size) is not None


def dd_output(call: Invocation) -> str:
    """Returns the output of `dd`, which copies a file or its input."""
    values = dict(one.split("=", 1) for one in call.arguments if "=" in one)
    text = text_of(call, [values["if"]] if "if" in values else [])
    if "of" in values:
        call.scope.write(values["of"], text)
        return ""
    return text.replace(ENDLESS, ANYTHING) if "count" in values else text


def yes_output(call: Invocation) -> str:
    """Returns the output of `yes`."""
    return ENDLESS


def tee_output(call: Invocation) -> str:
    """Returns the output of `tee`, and records the files that it writes."""
    text = call.stdin if call.stdin is not None else ANYTHING
    for path in call.options().operands:
        call.scope.write(path, text)
        if ENDLESS in text and classify(call.path(path)) != "harmless_device":
            call.danger(f"fills the disk with the file {path}", effect="machine")
    return text


def _decoded(text: str, decode: Callable[[bytes], bytes]) -> str:
    if not is_known(text) or len(text) > MAX_DECODED:
        return derived(text)
    try:
        plain = decode(text.encode("ascii", "replace")).decode("utf-8")
    except (ValueError, binascii.Error):
        return ANYTHING
    return "".join(ONE_WORD if character in HOLES else character for character in plain)


def base64_output(call: Invocation) -> str:
    """Returns the output of `base64` and similar programs."""
    parsed = call.options(("w", "wrap", "i", "o", "b"))
    operands = [*parsed.operands, *parsed.values("i")]
    text = text_of(call, operands)
    wide = call.program != "base32"
    if not parsed.has("d", "D", "decode"):
        if not is_known(text):
            return derived(text)
        encode = base64.b64encode if wide else base64.b32encode
        return encode(text.encode()).decode() + "\n"
    return _decoded(re.sub(r"\s+", "", text), _lenient_base64 if wide else _base32)


def _base32(text: bytes) -> bytes:
    return base64.b32decode(text)


def _lenient_base64(text: bytes) -> bytes:
    return base64.b64decode(text + b"=" * (-len(text) % 4))


def xxd_output(call: Invocation) -> str:
    """Returns the output of `xxd`. With `-r`, it is the decoded input."""
    parsed = call.options(names("c g l o s"))
    text = text_of(call, parsed.operands[:1])
    if not parsed.has("r"):
        return derived(text)
    return _decoded(re.sub(r"^\w+:|\s+|\\x|0x", "", text), binascii.unhexlify)


def openssl_output(call: Invocation) -> str | None:
    """Returns the output of `openssl base64` and `openssl enc`; None for other commands of
    openssl."""
    parsed = call.options(("in", "out", "k", "pass", "K", "iv"), single_dash=True)
    if parsed.operands[:1] not in (["base64"], ["enc"]):
        return None
    text = text_of(call, parsed.values("in"))
    coded = parsed.operands[0] == "base64" or parsed.has("base64", "a")
    if not parsed.has("d") or not coded:
        return derived(text)
    return _decoded(re.sub(r"\s+", "", text), _lenient_base64)


def tr_output(call: Invocation) -> str:
    """Returns the output of `tr`."""
    parsed = call.options(permute=False)
    text = call.stdin if call.stdin is not None else ANYTHING
    sets = [_characters(one) for one in parsed.operands]
    if not is_known(text) or len(text) > MAX_DECODED or not all(map(is_known, sets)):
        return derived(text)
    if parsed.has("c", "C", "s", "t") or not sets:
        return ANYTHING
    if parsed.has("d", "delete"):
        return text.translate({ord(character): None for character in sets[0]})
    if len(sets) < 2 or not sets[1]:
        return ANYTHING
    padded = sets[1] + sets[1][-1] * max(0, len(sets[0]) - len(sets[1]))
    return text.translate({ord(old): new for old, new in zip(sets[0], padded, strict=False)})


def _characters(text: str) -> str:
    for name, members in _CLASSES.items():
        text = text.replace(name, members)

    def members_of(found: re.Match[str]) -> str:
        first, last = ord(found[1]), ord(found[2])
        return "".join(map(chr, range(first, min(last, first + 256) + 1)))

    return _RANGE.sub(members_of, unescape(text))


def rev_output(call: Invocation) -> str:
    """Returns the output of `rev`."""
    text = text_of(call, call.options().operands)
    return "\n".join(line[::-1] for line in text.split("\n"))


def rot13_output(call: Invocation) -> str:
    """Returns the output of `rot13`."""
    return codecs.encode(text_of(call, ()), "rot13")


def atom_output(call: Invocation) -> str:
    """Returns the output of programs that print a plain name or number."""
    return PLAIN_NAME


def date_output(call: Invocation) -> str:
    """Returns the output of `date`: a plain name, unless an argument contains a slash or a
    space."""
    plain = all("/" not in one and " " not in one for one in call.arguments)
    return PLAIN_NAME if plain else ONE_WORD


def mktemp_output(call: Invocation) -> str:
    """Returns the output of `mktemp`."""
    return "/tmp/" + PLAIN_NAME  # noqa: S108


def pwd_output(call: Invocation) -> str:
    """Returns the output of `pwd`."""
    return call.scope.value("PWD")


def basename_output(call: Invocation) -> str:
    """Returns the output of `basename` and `dirname`."""
    operands = call.options(("s",)).operands
    if len(operands) == 1 and is_known(operands[0]):
        folder, _, name = operands[0].rstrip("/").rpartition("/")
        return name if call.program == "basename" else folder or "."
    return PLAIN_NAME if call.program == "basename" else derived(*operands)


def environment_output(call: Invocation) -> str:
    """Returns the output of `printenv`, which may contain secrets."""
    return SECRET_TEXT


OUTPUTS: dict[str, Callable[[Invocation], str | None]] = {
    "echo": echo_output,
    "cat": cat_output,
    "tac": cat_output,
    "head": head_output,
    "yes": yes_output,
    "dd": dd_output,
    "tail": cat_output,
    "tee": tee_output,
    "base64": base64_output,
    "gbase64": base64_output,
    "base32": base64_output,
    "xxd": xxd_output,
    "openssl": openssl_output,
    "tr": tr_output,
    "rev": rev_output,
    "rot13": rot13_output,
    "date": date_output,
    "mktemp": mktemp_output,
    "pwd": pwd_output,
    "basename": basename_output,
    "dirname": basename_output,
    "printenv": environment_output,
    **dict.fromkeys(
        names("whoami hostname nproc id uname arch wc uuidgen tty seq expr"), atom_output
    ),
}
"""Programs, each with the function that computes its output. If the function returns None, the
output is computed as for a program that is not in this table."""
