"""Parsers of a dump's text: its lines, statements, passes, functions and kind."""
