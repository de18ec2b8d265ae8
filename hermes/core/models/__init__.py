"""Finds the models that a configuration names, and calls each model in the wire format of its
provider."""
