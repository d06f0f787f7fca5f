"""Joint choices for many variables at least cost, under limits on memory."""
