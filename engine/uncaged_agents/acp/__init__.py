"""Coding agents that speak the Agent Client Protocol."""
