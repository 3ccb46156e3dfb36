"""The person's browser: listener for the extension, and the relay from Playwright to it."""
