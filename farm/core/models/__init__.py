"""Model variants and the formats of their files."""
