"""Hermes: one agent, every door."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.core.tools.function import tool
    from hermes.embedding import Agent, TurnFailed

__version__ = "0.1.0"
__all__ = ["Agent", "TurnFailed", "__version__", "tool"]


def __getattr__(name: str) -> object:
    # Late: who asks only for the version must not pay for the rest.
    if name in ("Agent", "TurnFailed"):
        import hermes.embedding  # noqa: PLC0415

        return vars(hermes.embedding)[name]
    if name == "tool":
        import hermes.core.tools.function  # noqa: PLC0415

        return hermes.core.tools.function.tool
    raise AttributeError(f"module 'hermes' has no attribute {name!r}")
