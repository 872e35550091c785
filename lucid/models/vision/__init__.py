"""Networks of images: a room per task, and what they share (base.py, blocks.py)."""
