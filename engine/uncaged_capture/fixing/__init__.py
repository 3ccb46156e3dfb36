"""Fixing of failed flows: a new version, proved and proposed."""
