"""The benchmark tools of ncnn and MNN, which print one row of times, and ours for TVM."""
