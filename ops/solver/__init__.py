"""The cheapest joint choices for many variables, under limits on memory."""
