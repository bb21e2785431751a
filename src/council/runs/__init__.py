"""Start, resume, fork, follow and audit runs."""
