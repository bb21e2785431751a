"""Members: everything that can answer for a seat. Other packages use the interface in base.py."""
