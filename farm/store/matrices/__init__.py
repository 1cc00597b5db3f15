"""Rows of matrices and their cells."""
