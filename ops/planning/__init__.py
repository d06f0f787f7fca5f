"""Plans of whole programs for a machine, and what a machine takes for a program: `gl.plan`."""
