"""Language models: two wire formats behind one small protocol, and one loop that lets them use tools."""
