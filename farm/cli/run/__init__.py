"""The command `farm run`."""
