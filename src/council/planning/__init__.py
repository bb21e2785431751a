"""From words and flags to a plan."""
