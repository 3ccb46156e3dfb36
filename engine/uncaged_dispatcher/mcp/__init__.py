"""Configured MCP servers as packs: a client of the protocol, and a flow for each of their tools."""
