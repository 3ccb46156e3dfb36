"""Browser session: a process with one browser, which workers reach over a local socket."""
