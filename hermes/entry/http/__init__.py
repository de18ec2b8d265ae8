"""The HTTP entry point: OpenAI's API, runs, health."""
