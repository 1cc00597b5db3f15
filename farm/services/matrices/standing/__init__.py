"""Standing matrices: what the farm keeps measuring, on a schedule and for each new version."""
