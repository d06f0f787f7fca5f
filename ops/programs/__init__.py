"""Programs: decisions in order, how they run, what they hold, and their reports."""
