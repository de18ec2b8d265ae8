"""Models: how each is reached, and what it speaks."""
