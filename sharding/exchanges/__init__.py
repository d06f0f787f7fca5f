"""What devices send each other: exchanges of whole mesh axes, and pieces in rounds."""
