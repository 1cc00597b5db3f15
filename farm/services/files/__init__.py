"""Models, variants and programs: what the farm keeps to run on devices."""
