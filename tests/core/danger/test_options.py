"""The options and operands of a program are found, in every notation."""

from hermes.core.danger.holes import ANYTHING
from hermes.core.danger.options import names, parse_options


def test_short_options_share_a_dash_and_take_attached_values() -> None:
    parsed = parse_options(["-abn5", "-o", "out", "x"], names("n o"))
    assert parsed.given == {"a": [], "b": [], "n": ["5"], "o": ["out"]}
    assert parsed.operands == ["x"]


def test_long_options_can_be_abbreviated() -> None:
    parsed = parse_options(["--recurs", "--size=5"])
    assert parsed.has("recursive")
    assert not parsed.has("r")
    assert parsed.values("size") == ["5"]


def test_options_may_follow_operands_unless_a_program_forbids_it() -> None:
    assert parse_options(["x", "-r"]).has("r")
    stopped = parse_options(["-u", "me", "x", "-r"], names("u"), permute=False)
    assert (stopped.operands, stopped.has("r")) == (["x", "-r"], False)


def test_two_dashes_end_the_options() -> None:
    assert parse_options(["--", "-r", "-"]).operands == ["-r", "-"]


def test_a_single_dash_can_begin_a_long_option() -> None:
    parsed = parse_options(["-auto-approve", "-ex", "run"], names("ex"), single_dash=True)
    assert parsed.given == {"auto-approve": [], "ex": ["run"]}


def test_an_unquoted_unknown_argument_may_be_an_option() -> None:
    assert parse_options([ANYTHING]).dynamic
    assert not parse_options([f"a{ANYTHING}"]).dynamic
