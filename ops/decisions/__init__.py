"""Decisions: what an op communicates and computes, known before anything runs."""
