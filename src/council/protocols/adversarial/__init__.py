"""Draft, triage, attack, verdict."""
