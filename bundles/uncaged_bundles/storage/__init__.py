"""Where bundles, names and their history are kept on disk."""
