"""What can sit at a seat. Everything else sees the seam in base.py alone."""
