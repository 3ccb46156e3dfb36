"""What a person hands over: arguments, parameters, files, versions, a yes."""
