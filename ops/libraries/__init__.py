"""Other libraries, which are told of `GridArray`s once a program imports them."""
