"""Renders the events of a turn for chats, HTTP clients and stdout, without I/O."""
