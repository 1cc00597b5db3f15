"""Hosts: views, administration, teardown."""
