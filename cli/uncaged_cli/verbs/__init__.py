"""One verb of the command line is one module here; each has one `command`."""
