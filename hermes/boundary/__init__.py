"""Everything that the agent does outside of this process: it runs commands, uses files of a
workspace, and reads web pages."""
