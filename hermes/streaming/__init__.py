"""How a turn looks at each edge: pure folds over its events."""
