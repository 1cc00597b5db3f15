"""Model variants and their manifests: the farm's only use of torch, in separate processes."""
