"""Renderers of a run: views, reports and exports built from its events or minutes."""
