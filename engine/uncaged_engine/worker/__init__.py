"""Worker of a bundle: the process that runs all its live threads, and its clients."""
