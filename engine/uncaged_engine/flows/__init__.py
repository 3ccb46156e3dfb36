"""Flows, read from the registry and their bundles: versions, differences, graphs."""
