"""Council: convene several language models around one question."""
