"""Shipped flows, and what `init` and `demo` write."""
