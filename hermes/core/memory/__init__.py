"""The agent's memory: notes in files, and earlier conversations."""
