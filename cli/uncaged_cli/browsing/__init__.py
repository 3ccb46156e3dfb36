"""Parts of the verb `browser`: knowledge, questions, searches and names."""
