"""The units of a real card, as `demarc topo` finds them."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass

from . import _library


@dataclass(frozen=True)
class Tpc:
    """A texture processing cluster: the unit that masks let in or keep out."""

    index: int  # logical: bit of a mask, and what --tpcs counts
    gpc: int  # its graphics processing cluster
    side: int | None  # half of the L2 that it is near to, 0 or 1; None: not known
    sms: tuple[int, ...]  # %smid of its multiprocessors, ascending


@dataclass(frozen=True)
class Topology:
    """All TPCs of a card, in logical order."""

    device: int  # N of cuda:N
    tpcs: tuple[Tpc, ...]

    @property
    def gpcs(self) -> dict[int, tuple[Tpc, ...]]:
        """TPCs by GPC, in ascending order of both."""
        found: dict[int, list[Tpc]] = {}
        for tpc in self.tpcs:
            found.setdefault(tpc.gpc, []).append(tpc)
        return {gpc: tuple(found[gpc]) for gpc in sorted(found)}

    @property
    def sides(self) -> dict[int | None, tuple[Tpc, ...]]:
        """TPCs by L2 side; those whose side is not known are under None, the last."""
        found: dict[int | None, list[Tpc]] = {}
        for tpc in self.tpcs:
            found.setdefault(tpc.side, []).append(tpc)
        return {side: tuple(found[side]) for side in sorted(found, key=lambda side: 2 if side is None else side)}

    @property
    def sm_count(self) -> int:
        return sum(len(tpc.sms) for tpc in self.tpcs)

    def __str__(self) -> str:
        """A line for each TPC, beneath a line of headings."""
        lines = ["TPC  GPC  side  SMs"]
        for tpc in self.tpcs:
            side = "-" if tpc.side is None else str(tpc.side)
            lines.append(f"{tpc.index:>3}  {tpc.gpc:>3}  {side:>4}  {' '.join(map(str, tpc.sms))}")
        return "\n".join(lines)


def _sms(library: ctypes.CDLL, card: ctypes.c_void_p, tpc: int) -> tuple[int, ...]:
    count = ctypes.c_uint32()
    _library.check(library.demarc_sms_of_tpc(card, tpc, None, 0, ctypes.byref(count)))
    sms = (ctypes.c_uint32 * count.value)()
    _library.check(library.demarc_sms_of_tpc(card, tpc, sms, count.value, ctypes.byref(count)))
    return tuple(sms)


def _tpc(library: ctypes.CDLL, card: ctypes.c_void_p, index: int) -> Tpc:
    gpc, side = ctypes.c_uint32(), ctypes.c_int32()
    _library.check(library.demarc_gpc_of_tpc(card, index, ctypes.byref(gpc)))
    _library.check(library.demarc_side_of_tpc(card, index, ctypes.byref(side)))
    return Tpc(index, gpc.value, None if side.value < 0 else side.value, _sms(library, card, index))


def topo(device: int = 0) -> Topology:
    """The TPCs of card cuda:`device`, measured or remembered. Takes a context on the card while it measures.

    An Error of code 2 where there is no such card or its topology cannot be found.
    """
    library = _library.library()
    card = ctypes.c_void_p()
    _library.check(library.demarc_open_observer(device, ctypes.byref(card)))
    try:
        return Topology(device, tuple(_tpc(library, card, t) for t in range(library.demarc_tpc_count(card))))
    finally:
        library.demarc_close(card)
