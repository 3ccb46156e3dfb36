"""The effect `browser`."""
