"""The verb `shell`: lines of a terminal, a pipe or a script as sentences and ``@`` verbs."""
