"""What settling reads and writes."""
