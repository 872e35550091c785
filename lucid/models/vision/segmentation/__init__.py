"""Networks that say what every pixel shows."""
