"""The HTTP entry point: OpenAI's API, the events of runs, and health checks."""
