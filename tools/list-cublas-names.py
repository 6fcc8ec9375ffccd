#!/usr/bin/env python3
"""Writes the public functions of cuBLAS's headers, one name a line, sorted.

  tools/list-cublas-names.py /usr/local/cuda/include > tests/guest/libraries/cublas_names.txt

A test compares what libdemarc_blas.so exports with this list.
"""
import re
import sys
from pathlib import Path

HEADERS = ("cublas_api.h", "cublasLt.h")


def names_of(folder):
    names = set()
    for header in HEADERS:
        text = (Path(folder) / header).read_text()
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
        names.update(re.findall(r"CUBLASWINAPI\s+(cublas\w+)\s*\(", text))
    return sorted(names)


def main():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FOLDER_OF_HEADERS")
    print("\n".join(names_of(sys.argv[1])))


if __name__ == "__main__":
    main()
