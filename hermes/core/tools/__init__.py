"""The built-in tools, and the code that runs tool calls."""
