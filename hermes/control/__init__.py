"""The control plane: from an accepted message to an owed answer."""
