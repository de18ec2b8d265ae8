"""The agent in an interactive terminal: imported only when a person sits at one."""
