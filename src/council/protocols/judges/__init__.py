"""Independent judges: validate, brainstorm, research."""
