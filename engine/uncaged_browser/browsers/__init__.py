"""Browsers of the machine: which are installed, and how one is started in its own sandbox."""
