"""Browser: operations on web pages, in a browser session that is a process of its own."""
