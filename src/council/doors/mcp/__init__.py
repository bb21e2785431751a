"""MCP server: `council mcp`."""
