"""Tests of what TVM's tuner measured and of what is built from it."""
