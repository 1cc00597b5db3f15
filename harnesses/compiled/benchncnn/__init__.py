"""A runner of ncnn's networks, which `farm harness build ncnn` compiles for phones."""

from pathlib import Path

SOURCE = Path(__file__).with_name("benchncnn.cpp")
