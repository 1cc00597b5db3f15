"""What is made of reports: measurements, series, speedups."""
