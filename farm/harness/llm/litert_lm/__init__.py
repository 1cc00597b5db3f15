"""LiteRT-LM's benchmark tool."""
