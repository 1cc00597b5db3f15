"""Rows of device actions and settings."""
