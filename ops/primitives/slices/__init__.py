"""Gather, scatter, dynamic slice and dynamic update slice."""
