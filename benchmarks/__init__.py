"""Measures the gateway beside a proxy that does nothing, against a fake model, on one machine."""
