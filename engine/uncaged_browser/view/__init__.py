"""Page views: the accessibility tree of a page as short text with references to elements."""
