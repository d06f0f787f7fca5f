"""What every layout has: steps, array programs, padding, routes to other layouts, memory."""
