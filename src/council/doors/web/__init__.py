"""Local web page and HTTP API: `council serve`."""
