"""FastAPI routes and problem documents."""
