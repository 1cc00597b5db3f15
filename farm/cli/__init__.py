"""The farm command."""
