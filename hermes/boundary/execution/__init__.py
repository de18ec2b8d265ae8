"""The backends that run commands."""
