"""Healing: the search for an element of a target that no alternative finds any longer."""
