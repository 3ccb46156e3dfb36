"""Translation of sentences by a model: the effect `catalog`, and threads of `interpret`."""
