"""Ids, units, addresses and text that every room uses."""
