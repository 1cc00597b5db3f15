"""Intervals, verdicts and families of comparisons; pure."""
