"""What the agent knows from earlier: notes in files, and earlier conversations."""
