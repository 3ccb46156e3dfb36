"""Sentence grammar (`.agr`): parser, compiler, matcher, ranking and completion. Does no I/O."""
