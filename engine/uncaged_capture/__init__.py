"""Traces of role steps, and flows made of what an agent did."""
