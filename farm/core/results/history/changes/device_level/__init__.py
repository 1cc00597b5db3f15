"""The level of a device: what all its absolute times have in common, and what it says of ratios."""
