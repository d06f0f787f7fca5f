"""Decisions in a row: one program, how it runs, what it holds, its report."""
