"""Test runs on sandboxed copies of the repository, and what they measured."""
