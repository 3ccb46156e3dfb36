"""Flows that are made of traces, one module per kind of flow."""
