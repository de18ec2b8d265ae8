"""Hermes: a durable gateway between people and AI agents."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.core.tools.function import tool
    from hermes.embedding import Agent, TurnFailed
    from hermes.hookspecs import hookimpl

__version__ = "0.1.0"
__all__ = ["Agent", "TurnFailed", "__version__", "hookimpl", "tool"]


def __getattr__(name: str) -> object:
    # A program that only reads the version must not wait for these modules.
    if name in ("Agent", "TurnFailed"):
        import hermes.embedding  # noqa: PLC0415

        return vars(hermes.embedding)[name]
    if name == "tool":
        import hermes.core.tools.function  # noqa: PLC0415

        return hermes.core.tools.function.tool
    if name == "hookimpl":
        import hermes.hookspecs  # noqa: PLC0415

        return hermes.hookspecs.hookimpl
    raise AttributeError(f"module 'hermes' has no attribute {name!r}")
