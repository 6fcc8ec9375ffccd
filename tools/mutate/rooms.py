"""What has to be reached where, and which programs test a room: the one place that says so."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Room:
    bar: int  # per cent of the faults that have to be killed, each by an assertion
    of: str = ""  # the room whose tests are run, where this is a part of it
    files: str = ""  # only sources whose path holds one of these texts, comma between
    programs: tuple = ()  # more of the room's own tests: (target, path below the build folder, arguments)
    leave_out: str = ""  # tests that pass in no copy or take too long, of all programs; as in --gtest_filter
    verbs: str = ""  # suites of the tests of the program that run this room's verbs, as in --gtest_filter


def _conformance(mode):
    return ("demarc_conformance", "tests/card/demarc_conformance",
            ("--mode", mode, "--launches", "2000", "--sms", "24"))


# What programs do that carry the room, as seen by what starts them.
_EXEC_TESTS = (("demarc_exec_tests", "tests/exec/demarc_exec_tests", ()),)

ROOMS = {
    "base": Room(80, verbs="*"),
    "ptx": Room(80, verbs="*Ptx*:*Rewrite*"),
    "fatbin": Room(90, verbs="*Ptx*"),
    "device": Room(80, verbs="*Topo*:*Probe*"),
    "launch": Room(80, verbs="*Outputs*:*Emulate*"),
    "color": Room(80, verbs="*Rewrite*"),
    "workload": Room(80, leave_out="KeptPtx.*", verbs="*Emulate*"),  # the copy does not compile the kernels
    "emulate": Room(80, leave_out="All/BundledKernels.*", verbs="*Emulate*"),  # kept for one target alone
    "emulate/warps": Room(95, of="emulate", files="ops/control,ops/warp,ops/async,/block,/cluster,/race,/groups,"
                                                  "/barriers,/accesses,/unwritten,/heap",
                          # Minutes a fault, and those of colours look at other rooms.
                          leave_out="All/BundledKernels.*:Colored*:RandomProgram.*:*Semantics*:TritonModules*"),
    "locality": Room(80, verbs="*Locality*"),
    "sim": Room(80, verbs="*Schedule*:*Translate*:*Blocks*"),
    "partition": Room(90, verbs="*Isolate*:*Topo*"),
    "lease": Room(95),
    "driver": Room(90, verbs="*Card*"),
    "guest": Room(90, programs=_EXEC_TESTS, verbs="*Exec*"),
    "guest/calls": Room(95, of="guest", files="guest/calls/"),
    "guest/process": Room(95, of="guest", files="guest/process/", programs=_EXEC_TESTS),
    "card": Room(90, programs=tuple(_conformance(mode) for mode in ("none", "timeslice", "green", "mask", "affinity")),
                 verbs="*Card*:*Isolate*"),
    "exec": Room(95, verbs="*Exec*"),
    "plugin": Room(95),
    "serve": Room(95, verbs="*ServeProgram*"),
    "probe": Room(90, programs=(("demarc_probe_slow_tests", "tests/probe/demarc_probe_slow_tests", ()),),
                  leave_out="SimulatedMemory.the_registers_of_a_v100*:SimulatedMemory.the_probe_recovers*",
                  verbs="*Probe*"),
    "study": Room(90, verbs="*Isolate*:*Blocks*"),
    "sweep": Room(90),
    "report": Room(80, verbs="*"),
    "cli": Room(80, verbs="*"),
}
