"""HTTP wires: request bodies, streamed answers and error responses of each API."""
