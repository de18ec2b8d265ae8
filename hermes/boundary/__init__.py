"""Where side effects happen, and how the service runs."""
