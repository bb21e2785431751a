"""Execute one step: retries, fallbacks, budget."""
