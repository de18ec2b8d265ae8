"""The interactive terminal. It is imported only when stdin and stdout are a terminal."""
