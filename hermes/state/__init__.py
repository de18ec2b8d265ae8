"""The data that outlives the process: the database, the memory files, other files, and the ids of
the folders that contain them."""
