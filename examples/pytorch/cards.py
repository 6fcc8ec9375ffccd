"""Adds on cards that are named by their numbers, as this program sees them, and prints which cards they were."""
import argparse

from timing import import_torch


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", nargs="+", type=int, help="0 is the first card that this program sees")
    arguments = parser.parse_args()
    torch = import_torch()
    for number in arguments.numbers:
        ones = torch.ones(1 << 20, device=f"cuda:{number}")
        print(number, float((ones + 1).sum()), torch.cuda.get_device_properties(number).uuid)


if __name__ == "__main__":
    main()
