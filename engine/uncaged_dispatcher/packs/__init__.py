"""Packs: flows that belong together, and the rules that read sentences for them."""
