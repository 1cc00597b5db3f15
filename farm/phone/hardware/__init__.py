"""CPU, GPU, NNAPI drivers, memory and storage."""
