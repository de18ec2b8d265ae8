"""Shells that accept and render."""
