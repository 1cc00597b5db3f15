"""ncnn's benchncnn."""
