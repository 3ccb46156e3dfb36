"""Bundles: their contract, validation, builders and storage."""
