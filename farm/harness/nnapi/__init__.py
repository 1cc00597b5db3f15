"""Where NNAPI and Arm NN placed a model."""
