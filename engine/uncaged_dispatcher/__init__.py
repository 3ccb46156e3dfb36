"""Dispatcher: sentences become calls of flows, without a model where a grammar reads them."""
