"""What a bundle is, and how one is made, checked and kept."""
