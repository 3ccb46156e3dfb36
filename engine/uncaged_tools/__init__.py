"""Flows as tools of a model, and the MCP server that offers them to other programs."""
