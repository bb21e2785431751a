"""Parts of the fake provider: replies, wire dialects and network faults."""
