"""Readings of a sentence: the calls that it may mean, and the choice among them."""
