"""Documents of matrices: specification, plan, progress, pending jobs."""
