"""The web door: the page, and the HTTP API it speaks to, over the same store and events as every other door."""
