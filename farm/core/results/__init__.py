"""Results made of reports: measurements, series, speedups."""
