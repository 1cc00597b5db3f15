"""Placements by NNAPI and Arm NN."""
