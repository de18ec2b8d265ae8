"""Tools: what the agent can do besides talking."""
