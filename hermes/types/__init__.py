"""The values and protocols that all layers share. This package imports no other package of
Hermes."""
