"""The step loop, and the one thread of execution that makes its commands real."""
