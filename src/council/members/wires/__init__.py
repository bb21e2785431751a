"""How endpoints speak: bytes out, an answer or a fault back."""
