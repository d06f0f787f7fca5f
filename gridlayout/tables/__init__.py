"""What tables of layouts are made of: words, cells of a layout, and HTML around rows of text."""
