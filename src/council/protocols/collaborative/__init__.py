"""Draft, improve, synthesise."""
