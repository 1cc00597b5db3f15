"""Matrices: axes, expansion into cells, job templates, estimates."""
