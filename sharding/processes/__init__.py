"""Calls on which several processes agree, and what they post about themselves."""
