"""What the API says and accepts, one file or folder a room."""
