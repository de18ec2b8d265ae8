"""Hermes: one agent, every door."""

__version__ = "0.1.0"
