"""Programs of ours in C++ for runtimes whose packages have libraries, and no program that runs on a phone."""
