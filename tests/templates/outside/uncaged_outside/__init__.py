"""Another distribution: everything in it is found through entry points."""
