"""Compile the common kernels on all cores, so that no query waits for a compiler."""

import os
import sys

from windrow.kernels.warm import warm

if __name__ == "__main__":  # the processes that help read this file too
    shown = sys.stdout.isatty()
    warm(
        lambda done, count, name: shown and print(f"\r\033[Kcompiling kernels: {done} of {count}, {name}", end=""),
        processes=os.cpu_count() or 1,
    )
    print("\r\033[K" if shown else "", "kernels are compiled", sep="")
