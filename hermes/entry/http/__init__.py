"""The HTTP door: OpenAI's API, runs, health."""
