"""The inputs that model files state, a module for each family of formats."""
