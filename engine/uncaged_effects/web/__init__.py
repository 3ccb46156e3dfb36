"""Web requests of effects: policy checks, redirects, secrets, and conversion of responses."""
