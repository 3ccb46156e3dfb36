"""Coding programs that are asked once per turn, and the table of all coding agents that we know."""
