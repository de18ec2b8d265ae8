"""The agent: prompt, models, tools."""
