"""Networks that find objects in images."""
