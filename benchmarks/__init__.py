"""Measures the gateway on one machine with a fake model, and compares it with a minimal proxy."""
