"""Interfaces: command line, library, MCP, web."""
