"""Elements of pages: how a step names one, and how it is found."""
