"""Choosing for many variables at once at the least cost, under limits on memory."""
