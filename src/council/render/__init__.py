"""Views of a run, all folded from its events or its minutes."""
