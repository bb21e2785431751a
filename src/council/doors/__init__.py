"""The ways in: each turns what a person or a program said into a run, and shows what came of it."""
