"""Word for word: the author's functions, and all that they name, go into a bundle as they stand."""
