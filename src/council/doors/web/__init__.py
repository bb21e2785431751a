"""Web server: the page and its HTTP API."""
