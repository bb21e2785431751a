"""Views of a run, folded from its events or minutes."""
