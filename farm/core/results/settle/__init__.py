"""Settlement of reports: pure functions of rows read before."""
