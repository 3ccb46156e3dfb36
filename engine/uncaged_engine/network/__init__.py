"""Network stream to checked addresses, the rules of a policy for hosts, and the filtering proxy."""
