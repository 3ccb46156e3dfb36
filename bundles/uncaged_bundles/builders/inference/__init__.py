"""Inference of a script's parameters and commands from its text, for a person to confirm."""
