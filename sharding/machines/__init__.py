"""Machines that price programs: chips, links, meshes, and measured figures."""
