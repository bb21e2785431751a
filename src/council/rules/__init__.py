"""Pure judgement: what was said goes in, what follows from it comes out."""
