"""What the text of a dump says: lines, what each states, of which pass and kind it is."""
