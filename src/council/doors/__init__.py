"""Interfaces to Council: command line, Python library, MCP server and HTTP API."""
