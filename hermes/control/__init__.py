"""The control plane: accepts messages, runs their turns and delivers the answers."""
