"""llama.cpp's benchmark tool."""
