"""Texts about the farm's documents, shared by the command line and the pages."""
