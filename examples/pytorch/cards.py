"""Adds on each of the cards that are named, by their numbers as this process sees them, and prints which they were.

    demarc exec --device cuda:1 --gpcs 0-3 --audit -- python3 examples/pytorch/cards.py 0
"""
import sys

import torch

for number in sys.argv[1:]:
    ones = torch.ones(1 << 20, device=f"cuda:{number}")
    print(number, float((ones + 1).sum()), torch.cuda.get_device_properties(int(number)).uuid)
