"""Translation of sentences by a model, and the constructions that are learned from it."""
