#!/usr/bin/env python3
"""The TPCs of a card: their GPC, their side of the L2, their SMs.

    PYTHONPATH=python DEMARC_LIBRARY=build/release/libdemarc.so python3 examples/python/topo.py 0
"""
import argparse
import sys

import demarc


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", nargs="?", type=int, default=0, help="N of cuda:N (0)")
    try:
        topology = demarc.topo(parser.parse_args().device)
    except demarc.Error as error:
        print(f"topo.py: {error}", file=sys.stderr)
        return error.code
    print(topology)
    for side, tpcs in topology.sides.items():
        name = "of no known side" if side is None else f"of side {side}"
        print(f"{len(tpcs)} TPCs {name}, {sum(len(tpc.sms) for tpc in tpcs)} SMs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
