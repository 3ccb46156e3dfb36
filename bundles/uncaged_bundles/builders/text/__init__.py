"""Python source text of bundles: literals and layout."""
