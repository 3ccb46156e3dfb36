"""Questions about a page, which a configured model answers."""
