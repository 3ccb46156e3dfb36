"""Actions that a page offers: their discovery, their run, and flows made of them."""
