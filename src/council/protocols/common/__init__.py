"""Code that two or more protocols share."""
