"""Placement: which JAX device holds which core. Imports `gridlayout`, never `gridlayout.ops`."""
