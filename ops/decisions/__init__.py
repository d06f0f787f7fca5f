"""What an op moves and computes, written down before anything runs."""
