"""Wrote the programs beside it: two convolutions with random weights, for XNNPACK and for no backend.

They are kept because making them takes all that executorch depends on; `pip install 'benchfarm[executorch]'`
has that. Called without arguments.
"""

from pathlib import Path

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from torch import nn

torch.manual_seed(20)
image = torch.randn(1, 3, 32, 32)
net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1)).eval()
for name, partitioners in (("xnnpack", [XnnpackPartitioner()]), ("portable", [])):
    lowered = to_edge_transform_and_lower(torch.export.export(net, (image,)), partitioner=partitioners)
    Path(__file__).with_name(f"{name}.pte").write_bytes(lowered.to_executorch().buffer)
