"""What people write with PyTorch: load all models, stack each tensor, reduce, save.  peer_torch.py mean|median OUT THREADS MODEL..."""
import sys

import torch
from safetensors.torch import load_file, save_file

rule, out, threads, *files = sys.argv[1:]
if int(threads):
    torch.set_num_threads(int(threads))
models = [load_file(file) for file in files]
merged = {}
for name, first in models[0].items():
    rows = torch.stack([model[name] for model in models]).float()
    merged[name] = (rows.mean(0) if rule == "mean" else rows.median(0).values).to(first.dtype)
save_file(merged, out)
