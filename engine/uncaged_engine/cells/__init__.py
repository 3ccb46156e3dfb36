"""The locked-down process of a bundle: it is asked, replayed, and replaced when it dies."""
