"""Demarc from Python: the units of a card, the leases of its tenants, results of studies, PyTorch in a tenant's colours.

    demarc.topo(0)                     # TPCs, GPCs, SMs and L2 sides of card cuda:0
    demarc.leases()                    # what the tenants of `demarc serve` have
    demarc.slo_miss()                  # inside a lease: a request was late; the server counts it for the tenant
    demarc.isolate.read("study.json")  # what `demarc isolate` measured
    demarc.emulate("k.ptx", ...)       # a kernel on NumPy's arrays, on the CPU; so locality() and schedule()
    demarc.torch.enable()              # inside a lease: PyTorch's kernels in the tenant's colours

Nothing is imported but the standard library; demarc.torch imports PyTorch and Triton when it is used, emulate() and the like NumPy.
"""
from . import isolate
from ._errors import Error
from ._lease import Lease, Server, leases, server, slo_miss
from ._library import version
from ._programs import (Emulation, Finding, Kernel, Locality, Policy, Sharing, emulate, locality,
                        schedule)
from ._topology import Topology, Tpc, topo

__version__ = "0.1.0"
__all__ = ["Emulation", "Error", "Finding", "Kernel", "Lease", "Locality", "Policy", "Server", "Sharing", "Topology", "Tpc",
           "emulate", "isolate", "leases", "locality", "schedule", "server", "slo_miss", "topo", "version"]
