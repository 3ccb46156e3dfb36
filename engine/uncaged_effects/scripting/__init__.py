"""Parts of the script effect: checks of its body and text, paths, programs, network, messages."""
