"""The values and protocols that all layers share. Imports no other package of Hermes."""
