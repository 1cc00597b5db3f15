"""Looks at the rounds of a matrix that grows until its cells are decided."""
