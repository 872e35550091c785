"""Networks that say what an image shows."""
