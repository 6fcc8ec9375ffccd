"""Leases as data: of what a server on the stand-in card says, and of what other servers might."""
import json
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import demarc
from demarc import _lease
from support import BUILD, PACKAGE, environment, own_libcuda, python

CONFIG = """description = "h100-sxm"
memory = "64 MiB"
mps = "off"
[tenants.a]
sms = "50 %"
colors = "1/2"
[tenants.b]
tpcs = "6-11"
colors = "2/2"
bytes = "16 MiB"
"""
TENANT = {"name": "a", "tpcs": "0", "colors": "0", "sync_domain": None, "bytes": 1, "given_bytes": 0, "unclean_bytes": 0, "lost_bytes": 0, "window_bytes": 0, "shown_bytes": 0,
          "extents": 0, "leases": 0, "processes": [7], "attached_ms": 12, "at_limit_ms": 0, "refused_takes": 0, "refused_bytes": 0, "refused_calls": 0, "refused_kernels": 0, "launches_total": 3, "slo_misses": 4, "canary_slowdown": None, "canary_baseline_cycles": 281.5, "launches": [1, 2], "unconfined_launches": [0, 0],
          "refused_launches": [0, 0], "revoked": False}
SERVER = {"schema": "demarc.lease/1", "card": "GPU-1", "arena_bytes": 9, "mps": "on", "launch_paths": ["x", "y"], "tenants": [TENANT]}


class WithAServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.variables = {"DEMARC_LIBCUDA": own_libcuda(cls.folder), "DEMARC_CACHE": cls.folder / "cache",
                         "DEMARC_SOCKET": cls.folder / "socket", "DEMARC_PROGRAM": BUILD / "demarc"}
        (cls.folder / "f.toml").write_text(CONFIG)
        cls.server = subprocess.Popen([BUILD / "demarc", "serve", "--config", cls.folder / "f.toml"],
                                      env=environment(**cls.variables), stderr=subprocess.DEVNULL)
        cls.addClassCleanup(cls.end)
        while not (cls.folder / "socket").exists() and cls.server.poll() is None:
            time.sleep(0.01)

    @classmethod
    def end(cls):
        cls.server.terminate()
        cls.server.wait()

    def show(self, code, *arguments, **changes):
        return python(code, *arguments, **(self.variables | changes))

    def test_a_program_counts_its_misses_for_its_tenant(self):
        miss = "import demarc; demarc.slo_miss(); demarc.slo_miss(); print([t.slo_misses for t in demarc.leases()])"
        library = {"DEMARC_LIBRARY": BUILD / "libdemarc.so"}
        ended = subprocess.run([BUILD / "demarc", "exec", "--tenant", "b", "--", sys.executable, "-c", miss],
                               env=environment(**self.variables, **library), capture_output=True, text=True, check=False)
        self.assertEqual(ended.stdout, "[0, 2]\n", ended.stderr)
        said = self.show("import demarc\ntry: demarc.slo_miss()\nexcept demarc.Error as error: print(error.code, error)", **library)
        self.assertEqual(said, "2 an SLO miss counts for a tenant, but this process has no lease: start the program with "
                               "demarc exec --tenant NAME\n")

    def test_the_tenants_are_told_as_they_are(self):
        self.assertEqual(self.show("import demarc\nfor t in demarc.leases(): print(t.name, t.tpcs, t.colors, t.sync_domain, "
                                   "t.bytes >> 24 > 0, t.leases, t.processes, t.launches, t.revoked)"),
                         "a 0-5 0 1 True 0 () (0, 0, 0, 0, 0) False\nb 6-11 1 2 True 0 () (0, 0, 0, 0, 0) False\n")
        self.assertEqual(self.show("import demarc\nprint(demarc.leases()[1].bytes)"), "16777216\n")
        self.assertEqual(self.show("import demarc\ns = demarc.server()\nprint(s.arena_bytes >> 24 > 0, s.card[:4], s.launch_paths[0], len(s.tenants))"),
                         "True GPU- default stream 2\n")

    def test_a_socket_that_is_named_comes_before_the_default(self):
        code = "import demarc, sys\nprint(len(demarc.leases(sys.argv[1])))"
        self.assertEqual(self.show(code, str(self.folder / "socket"), DEMARC_SOCKET="/none"), "2\n")
        self.assertIn("demarc serve does not run there", self.show(code, "/none"))

    def test_where_no_server_listens_the_programs_words_and_code_are_the_error(self):
        said = self.show("import demarc\ntry: demarc.leases()\nexcept demarc.Error as e: print(e.code, e)", DEMARC_SOCKET="/none")
        self.assertTrue(said.startswith("2 demarc lease: socket '/none': "), said)
        self.assertIn("demarc lease list ended with 1", self.show("import demarc; demarc.leases()", DEMARC_PROGRAM="/bin/false"))

    def test_exec_tells_a_program_its_tenant(self):
        show = ["--", "python3", "-c", "from demarc.torch import _lease; print(_lease.tenant())"]
        for options, variables, said in ((["--tenant", "b"], {"DEMARC_TENANT": "c"}, "b\n"),
                                         ([], {"DEMARC_TENANT": "b"}, "b\n"),
                                         (["--observe"], {}, "this process is under demarc exec without --tenant"),
                                         (["--tpcs", "1"], {"DEMARC_TENANT": "b"}, "brings its own TPCs: leave")):
            ended = subprocess.run([BUILD / "demarc", "exec", *options, *show], capture_output=True, text=True,
                                   env=environment(path=[PACKAGE], **(self.variables | variables)))
            self.assertIn(said, ended.stdout + ended.stderr)

    def test_a_program_with_the_variable_and_nothing_in_its_code_runs_in_the_lease(self):
        site = "import site, sys; site.addsitedir(sys.argv[1]); import os; print(os.environ['DEMARC_CONTROL'][:6], *sys.argv[1:])"
        said = self.show(site, str(PACKAGE), "last", DEMARC_TENANT="b")
        self.assertIn(f"/proc/ {PACKAGE} last\n", said)
        said = self.show(site, str(PACKAGE), DEMARC_TENANT="c")
        self.assertIn("there is no tenant 'c'", said)


class Parsing(unittest.TestCase):
    def test_lists_become_tuples(self):
        server = _lease.parse(json.dumps(SERVER))
        self.assertEqual(server.tenants[0].launches, (1, 2))
        self.assertEqual(server.launch_paths, ("x", "y"))

    def test_what_is_missing_or_not_known_is_named(self):
        for given, words in (({**SERVER, "schema": "demarc.lease/2"}, "schema 'demarc.lease/2'; 'demarc.lease/1' was expected"),
                             ([], "schema None; "), ({**SERVER, "more": 1}, "'more' is not known to this package"),
                             ({**SERVER, "tenants": [TENANT, {**TENANT, "new": 1}]}, r"tenants\[1\]: 'new' is not known"),
                             ({**SERVER, "tenants": [{"name": "a"}]}, r"tenants\[0\]: 'at_limit_ms' is missing"),
                             ({**SERVER, "tenants": [3]}, r"tenants\[0\]: an object was expected")):
            with self.assertRaisesRegex(demarc.Error, words) as caught:
                _lease.parse(json.dumps(given))
            self.assertEqual(caught.exception.code, 3)
        with self.assertRaisesRegex(demarc.Error, "^demarc lease list --json: Expecting value"):
            _lease.parse("no json")


if __name__ == "__main__":
    unittest.main()
