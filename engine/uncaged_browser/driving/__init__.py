"""Control of a browser context by Playwright."""
