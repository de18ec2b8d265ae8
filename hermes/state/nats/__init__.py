"""A bus for processes on several machines: NATS."""
