"""The parts of the fake provider: what it says, how each wire says it, and what can go wrong on the way."""
