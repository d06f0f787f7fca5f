"""Programs side by side: what each costs, and which value of one is which of another."""
