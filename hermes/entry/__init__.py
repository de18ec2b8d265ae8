"""The entry points: they accept messages and show the answers."""
