"""What a file must be before it is a bundle."""
