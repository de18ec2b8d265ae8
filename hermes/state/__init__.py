"""The data that outlives the process: the database, the memory and other files, and their
identities."""
