"""What `demarc serve` says of its tenants: `demarc lease list --json`, whose form has a version.

The program is asked, and not the socket: what is said there is no interface (docs/serve.md).
"""
from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, fields
from typing import Any

from ._errors import Error
from ._library import check, find_program, library

SCHEMA = "demarc.lease/1"


@dataclass(frozen=True)
class Lease:
    """What one tenant has. Sizes are bytes; lists of launches have one number a path (Server.launch_paths)."""

    name: str
    tpcs: str  # such as "0-15,20"
    colors: str  # such as "0"
    sync_domain: int | None  # memory synchronisation domain; None: the programs' own
    bytes: int  # the most that it may have
    given_bytes: int
    unclean_bytes: int  # given back, and waiting to be filled with zeros
    lost_bytes: int  # could not be filled with zeros, and are never given again
    window_bytes: int  # the most that the page table may show at a time; 0: none
    shown_bytes: int  # and shows
    extents: int
    leases: int  # that live
    processes: tuple[int, ...]  # PIDs that are attached
    attached_ms: int  # that its processes were on the card, those that ended too
    at_limit_ms: int  # that nothing more of its memory could be given
    refused_takes: int
    refused_bytes: int  # of living leases, as the next two: allocations, calls of the driver, kernels
    refused_calls: int
    refused_kernels: int
    launches_total: int  # since the start of the server, by its programs, those that ended too
    slo_misses: int  # that were reported since the start of the server
    canary_slowdown: float | None  # time of its canary's reads now over that without neighbours; None: not known
    canary_baseline_cycles: float | None  # per read, without neighbours
    launches: tuple[int, ...]  # inside the tenant's TPCs
    unconfined_launches: tuple[int, ...]
    refused_launches: tuple[int, ...]
    revoked: bool


@dataclass(frozen=True)
class Server:
    """A server's card (its UUID), its coloured memory in bytes, and all of its tenants."""

    card: str
    arena_bytes: int
    mps: str  # how programs share the card in time: "on", "off" (they take turns), "ended" (its daemon has)
    launch_paths: tuple[str, ...]
    tenants: tuple[Lease, ...]


def _members(given: Any, kind: type, place: str) -> dict[str, Any]:
    """Exactly the fields of `kind`; lists become tuples. What is missing or not known is named."""
    if not isinstance(given, dict):
        raise Error(f"{place}: an object was expected", 3)
    known = {field.name for field in fields(kind)}
    for name in sorted(known - given.keys()):
        raise Error(f"{place}: '{name}' is missing", 3)
    for name in sorted(given.keys() - known):
        raise Error(f"{place}: '{name}' is not known to this package", 3)
    return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}


def parse(text: str) -> Server:
    """What `demarc lease list --json` prints."""
    try:
        given = json.loads(text)
    except ValueError as error:
        raise Error(f"demarc lease list --json: {error}", 3) from error
    schema = given.pop("schema", None) if isinstance(given, dict) else None
    if schema != SCHEMA:
        raise Error(f"demarc lease list --json: schema {schema!r}; {SCHEMA!r} was expected", 3)
    server = _members(given, Server, "demarc lease list --json")
    tenants = [Lease(**_members(tenant, Lease, f"demarc lease list --json: tenants[{index}]"))
               for index, tenant in enumerate(server["tenants"])]
    return Server(**(server | {"tenants": tuple(tenants)}))


def server(socket: str | None = None) -> Server:
    """The server at `socket`, without one at the default of `demarc lease` ($DEMARC_SOCKET first).

    An Error of code 2 where no server listens there.
    """
    command = [find_program(), "lease", "list", "--json"] + (["--socket", socket] if socket else [])
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise Error(ended.stderr.strip() or f"demarc lease list ended with {ended.returncode}", ended.returncode)
    return parse(ended.stdout)


def slo_miss() -> None:
    """Counts one miss of the service-level objective for the tenant of this program (metric demarc_tenant_slo_misses_total).

    An Error of code 2 outside of a lease.
    """
    check(library().demarc_slo_miss())


def leases(socket: str | None = None) -> list[Lease]:
    """The tenants of the server at `socket` (server())."""
    return list(server(socket).tenants)
