"""Fault localisation: how suspicious each line is, and which failing tests share a cause."""
