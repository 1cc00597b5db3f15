"""Model variants and their manifests: the farm's only place for torch, in processes of their own."""
