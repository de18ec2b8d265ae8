"""The chat platforms that Hermes connects to."""
