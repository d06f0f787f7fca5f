"""What values hold: sizes of types, the worst of them kept, lives, and the most at a time."""
