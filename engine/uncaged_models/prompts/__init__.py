"""Prompts of agents and models, and extraction of the structured block from an answer."""
