"""Code that a builder copies word for word into the bundles that need it."""
