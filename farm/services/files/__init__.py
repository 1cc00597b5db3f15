"""Artifacts, variants, programs, and how long they are kept."""
