"""State and identity: what outlives the process."""
