"""Battery, load, screen, temperatures."""
