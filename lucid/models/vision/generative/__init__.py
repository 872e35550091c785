"""Networks that make images."""
