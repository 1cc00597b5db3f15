"""CPU, GPU and their clocks, NNAPI drivers, memory and storage."""
