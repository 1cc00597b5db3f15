"""Backup and restore of a farm."""
