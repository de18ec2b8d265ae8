"""The agent: its loop, prompt, models, tools and memory."""
