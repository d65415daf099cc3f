"""Draw docs/pictures/shapes.png: the neighbours of one cell in each kind of shape."""

from pathlib import Path

import matplotlib
import numpy as np

import windrow as wr

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.colors import ListedColormap

SIZE, MIDDLE = 11, 5
KNIGHT = [(a, b) for a in (-2, -1, 1, 2) for b in (-2, -1, 1, 2) if abs(a) != abs(b)]
SHAPES = {
    "L1(4)": wr.L1(4),
    "L2(4.3)": wr.L2(4.3),
    "Linf(4)": wr.Linf(4),
    "Lp(3, 4.3)": wr.Lp(3, 4.3),
    "Hamming(1)": wr.Hamming(1),
    "offset_list(a knight's moves)": wr.offset_list(KNIGHT),
    "offsets(i=(-3, 1), j=(0, 4))": wr.offsets(axis0=(-3, 1), axis1=(0, 4)),
    "L2(4.3) & offsets(i=(-9, 0))": wr.L2(4.3) & wr.offsets(axis0=(-9, 0)),
    "L2(4.3).excluding_self()": wr.L2(4.3).excluding_self(),
}


def seen(shape: object) -> np.ndarray:
    """1 at the cells that the middle sees."""
    field = np.zeros((SIZE, SIZE), int)
    field[MIDDLE, MIDDLE] = 1
    return wr.sliding(field, "sum", shape=shape.reflect())


def main() -> None:
    figure, axes = plt.subplots(3, 3, figsize=(7.2, 7.8), layout="constrained")
    for axis, (name, shape) in zip(axes.flat, SHAPES.items(), strict=True):
        axis.pcolormesh(seen(shape), cmap=ListedColormap(["#f4f4f2", "#3b7ea1"]), edgecolor="white", linewidth=1.2)
        axis.plot(MIDDLE + 0.5, MIDDLE + 0.5, "o", markersize=6, color="#fdb515", markeredgecolor="#333333")
        axis.set_title(name, fontsize=9, family="monospace")
        axis.set_aspect("equal")
        axis.invert_yaxis()
        axis.axis("off")
    figure.savefig(Path(__file__).parents[1] / "docs" / "pictures" / "shapes.png", dpi=90)


if __name__ == "__main__":
    main()
