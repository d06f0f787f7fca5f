"""The choice of divisions for all values of a program together, on a given machine."""
