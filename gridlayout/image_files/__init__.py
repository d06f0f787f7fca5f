"""Image files: the bytes of each core in files, beside a text that says what they are."""
