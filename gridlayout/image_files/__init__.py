"""Image files: the bytes of each core in files, with a text file that describes them."""
