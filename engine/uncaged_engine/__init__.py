"""What runs a bundle; `api` is its front door."""
