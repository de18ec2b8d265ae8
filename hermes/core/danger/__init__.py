"""Decides whether a shell command may run, needs approval, or is never allowed."""
