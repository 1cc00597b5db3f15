"""Comparisons of candidates with baselines: tables of them, and their command."""
