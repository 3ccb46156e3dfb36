"""Store in a directory, behind the protocols of `stores.protocol`."""
