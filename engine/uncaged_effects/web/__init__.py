"""Requests to web servers on behalf of bundles: what may be reached, how, and how much of it."""
