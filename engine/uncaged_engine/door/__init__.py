"""Protocols between the engine and its parts: effects with their context and outcomes, and
agents.
"""
