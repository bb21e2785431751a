"""HTTP wires of the model vendors."""
