"""How a bundle's text is written: literals and layout."""
