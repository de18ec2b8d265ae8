"""Translates the finish reasons of all wire formats into the reasons why an answer was cut off."""

from collections.abc import Mapping

from hermes.types.messages import CutReason

_CUTS: Mapping[str, CutReason] = {
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
    "refusal": "content_filter",
    "safety": "content_filter",
}


def cut_by(reason: str | None) -> CutReason:
    """Returns why the answer was cut off, or "" for a normal end or an unknown reason."""
    return _CUTS.get((reason or "").casefold(), "")
