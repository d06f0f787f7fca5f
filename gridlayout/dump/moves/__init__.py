"""What goes from one place to another: relayouts, collectives, and tensors that devices divide."""
