"""Plans of whole programs for a machine, and simulations of programs: `gl.plan`."""
