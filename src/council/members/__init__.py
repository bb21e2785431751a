"""Members: anything that can fill a seat."""
