"""Finds the models that a configuration names, and calls them in every wire format."""
