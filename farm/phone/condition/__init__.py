"""Battery, clocks, screen, temperatures."""
