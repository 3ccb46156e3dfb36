"""The texts that an agent or a model reads, and the block that is read out of its answer."""
