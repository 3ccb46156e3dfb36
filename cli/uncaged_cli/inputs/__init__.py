"""User input: options, parameters, files, flow sources, versions, confirmations."""
