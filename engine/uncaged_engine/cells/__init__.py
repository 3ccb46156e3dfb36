"""Sandbox process of a bundle: requests, replay, and replacement when it dies."""
