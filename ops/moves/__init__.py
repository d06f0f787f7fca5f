"""Movement of data on one device of a mesh: packing, padding, relayouts."""
