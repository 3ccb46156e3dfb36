"""Knowledge: pages that were read, in a full-text index, and answers with citations from it."""
