"""Candidate edits: pure functions from the text of a file to an ordered list of small changes."""
