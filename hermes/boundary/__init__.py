"""Side effects outside the process: commands, files of a workspace, web pages."""
