"""Commands for results: speedups, placement, explain, reparse."""
