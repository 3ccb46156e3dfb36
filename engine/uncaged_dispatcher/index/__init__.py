"""Index of rules: the rules of all flows and packs of a store, found by the words of a sentence."""
