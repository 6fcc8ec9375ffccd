"""demarc sweep as a program: killed at any moment it loses nothing that was written; under mpirun the results are the same."""
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from support import BUILD, ROOT

MACHINE = ("*general\n100\n*workload\n80 3-9 2-9 1-4\n1-5\n*sm\n2 1 1 4\n*mem\n100\n*overhead_sm\n1 0.2\n"
           "*overhead_mem\n1 0.5\n")
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def demarc(*arguments):
    return subprocess.run([BUILD / "demarc", *arguments], capture_output=True, text=True, check=False, timeout=100)


def group_of(leader):
    """The processes of a group that is led by `leader`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                if int(fields[2]) == leader and fields[0] != "Z":
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


class Sweep(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="demarc-sweep-"))
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "load.conf").write_text(MACHINE)

    def plan(self, seeds, **more):
        """Points of about a millisecond: a workload a seed."""
        path = self.folder / "plan.json"
        path.write_text(json.dumps({
            "schema": "demarc.sweep/1",
            "command": ["schedule", "compare", str(self.folder / "load.conf"), "--seeds", "1", "--seed", "{seed}",
                        "--threads", "1", "--json"],
            "axes": {"policy": ["rr", "bfa"], "seed": {"from": 1, "to": seeds, "step": 1}},
            "keep": {"antt": "/cells/policy={policy}/antt/mean", "stp": "/cells/policy={policy}/stp/mean"},
            "aggregate": {"over": ["seed"], "statistics": ["mean"], "best": {"axis": "policy", "measure": "antt"}},
        } | more))
        return path

    @staticmethod
    def rows(database):
        """How many there are; 0 while there is no table."""
        if not database.exists():
            return 0
        opened = sqlite3.connect(database)
        try:
            return opened.execute("SELECT count(*) FROM points").fetchone()[0]
        except sqlite3.OperationalError:
            return 0
        finally:
            opened.close()

    def points(self, database):
        ran = demarc("sweep", "export", database, "--points")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout

    def test_a_hundred_kills_lose_nothing_that_was_written(self):
        plan, database = self.plan(1000), self.folder / "killed.db"
        dice = random.Random(7)
        rows = kills = 0
        while kills < 100:
            ran = subprocess.Popen([BUILD / "demarc", "sweep", "run", plan, "--db", database], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
            # Until a point is written more time: on a busy machine a sweep begins later.
            time.sleep(dice.uniform(0, 0.1 if rows else 1))
            members = group_of(ran.pid)
            # All of them, the one that writes, or any other: that one is replaced, and the sweep goes on.
            victims = dice.choice([members, [ran.pid], [dice.choice(members)] if members else []])
            for victim in victims:
                try:
                    os.kill(victim, signal.SIGKILL)
                    kills += 1
                except ProcessLookupError:
                    pass
            if ran.pid not in victims:
                ran.kill()
            ran.wait()
            if not database.exists():
                continue
            with sqlite3.connect(database) as opened:
                self.assertEqual(opened.execute("PRAGMA integrity_check").fetchone(), ("ok",))
                if opened.execute("SELECT count(*) FROM sqlite_master WHERE name = 'points'").fetchone() == (0,):
                    continue
                now = opened.execute("SELECT count(*) FROM points").fetchone()[0]
            opened.close()
            self.assertGreaterEqual(now, rows)
            rows = now
        self.assertGreater(rows, 0)
        for _ in range(20):  # none of those that were killed is left to write it
            ran = demarc("sweep", "run", plan, "--db", database, "--retry")
            if "another sweep is writing to it" not in ran.stderr:
                break
            time.sleep(0.1)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn(" 2000 of 2000 points", ran.stdout)
        clean = self.folder / "clean.db"
        self.assertEqual(demarc("sweep", "run", plan, "--db", clean).returncode, 0)
        self.assertEqual(self.points(database), self.points(clean))

    def test_ranks_of_mpi_give_the_same_results(self):
        if not (BUILD / "libdemarc_mpi.so").exists():
            self.skipTest("no MPI: said by the build")
        plan = self.plan(40)
        alone = self.folder / "alone.db"
        self.assertEqual(demarc("sweep", "run", plan, "--db", alone).returncode, 0)
        for ranks in (1, 2, 16):
            database = self.folder / f"{ranks}.db"
            ran = subprocess.run(["mpirun", "--oversubscribe", "-np", str(ranks), BUILD / "demarc", "sweep", "run", plan,
                                  "--db", database], capture_output=True, text=True, check=False, timeout=100,
                                 env=os.environ | MPI)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
            self.assertEqual(self.points(database), self.points(alone))
            with sqlite3.connect(database) as opened:
                there = [row[0] for row in opened.execute("SELECT DISTINCT _rank FROM points ORDER BY 1")]
            opened.close()
            self.assertEqual(there, list(range(ranks)))

    def test_a_job_of_mpi_that_loses_a_rank_goes_on_where_it_was(self):
        if not (BUILD / "libdemarc_mpi.so").exists():
            self.skipTest("no MPI: said by the build")
        plan, database = self.plan(1000), self.folder / "lost.db"
        dice = random.Random(11)
        rows = 0
        for _ in range(2):
            ran = subprocess.Popen(["mpirun", "--oversubscribe", "-np", "3", BUILD / "demarc", "sweep", "run", plan, "--db",
                                    database], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | MPI)
            while self.rows(database) == rows and ran.poll() is None:
                time.sleep(0.01)
            time.sleep(dice.uniform(0, 0.2))
            ranks = [int(line) for line in subprocess.run(["pgrep", "-P", str(ran.pid)], capture_output=True, text=True,
                                                          check=False).stdout.split()]
            for rank in ranks[:1] if dice.random() < 0.5 else ranks[-1:]:
                os.kill(rank, signal.SIGKILL)
            self.assertNotEqual(ran.wait(timeout=60), 0)
            with sqlite3.connect(database) as opened:
                self.assertEqual(opened.execute("PRAGMA integrity_check").fetchone(), ("ok",))
            opened.close()
            now = self.rows(database)
            self.assertGreater(now, rows)
            rows = now
        ran = demarc("sweep", "run", plan, "--db", database)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        clean = self.folder / "clean.db"
        self.assertEqual(demarc("sweep", "run", plan, "--db", clean).returncode, 0)
        self.assertEqual(self.points(database), self.points(clean))

    def test_a_job_of_mpi_whose_first_rank_cannot_write_ends(self):
        if not (BUILD / "libdemarc_mpi.so").exists():
            self.skipTest("no MPI: said by the build")
        ran = subprocess.run(["mpirun", "--oversubscribe", "-np", "3", BUILD / "demarc", "sweep", "run", self.plan(3),
                              "--db", self.folder / "none" / "r.db"], capture_output=True, text=True, check=False,
                             timeout=60, env=os.environ | MPI)
        self.assertEqual(ran.returncode, 1, ran.stderr)
        self.assertIn("r.db: No such file or directory", ran.stderr)

    def test_without_the_library_of_mpi_ranks_are_refused(self):
        program = self.folder / "demarc"
        shutil.copy(BUILD / "demarc", program)
        ran = subprocess.run([program, "sweep", "run", self.plan(2)], capture_output=True, text=True, check=False,
                             env=os.environ | {"OMPI_COMM_WORLD_SIZE": "2"})
        self.assertEqual(ran.returncode, 2)
        self.assertIn("but it was built without MPI: there is no ", ran.stderr)
        self.assertFalse((self.folder / "plan.db").exists())

    def test_it_says_what_came_out_and_what_failed(self):
        plan = self.plan(3)
        ran = demarc("sweep", "run", plan)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertRegex(ran.stdout, r"plan.db: 6 of 6 points, 6 of them now in [0-9.]+ s, 0 failed\n")
        page = self.folder / "page.html"
        shown = demarc("sweep", "show", self.folder / "plan.db", "--html", page)
        self.assertIn("6 of 6 points ended, 0 failed", shown.stdout)
        self.assertRegex(shown.stdout, r"best_policy +antt_mean")
        self.assertIn("demarc schedule compare ", page.read_text())
        self.assertIn("antt by policy", page.read_text())
        table = json.loads(demarc("sweep", "show", self.folder / "plan.db", "--json").stdout)
        self.assertEqual([row["points"] for row in table["rows"]], [3, 3])
        failing = self.plan(3, keep={"antt": "/cells/policy={policy}/nothing"})
        ran = demarc("sweep", "run", failing, "--db", self.folder / "f.db")
        self.assertEqual(ran.returncode, 3)
        self.assertIn("6 points failed", ran.stderr)
        self.assertIn("antt: the result has nothing at /cells/policy=rr/nothing", self.points(self.folder / "f.db"))
        again = demarc("sweep", "run", failing, "--db", self.folder / "f.db")
        self.assertEqual(again.returncode, 3, "what failed before has not come right")
        for arguments in (["show", "--html"], ["show", "-o"], ["export", "-o"]):
            ran = demarc("sweep", arguments[0], self.folder / "f.db", arguments[1], self.folder / "f.db")
            self.assertEqual(ran.returncode, 1)
            self.assertIn("holds the results; write to another file", ran.stderr)
        self.points(self.folder / "f.db")

    def test_an_export_is_in_the_format_that_the_name_of_its_file_says(self):
        database = self.folder / "plan.db"
        self.assertEqual(demarc("sweep", "run", self.plan(1)).returncode, 0)
        for option, name, message in [
                ("--output=", "points.parquet", "Parquet is not written; write CSV with `-o {folder}/points.csv`"),
                ("--json=", "points.parquet", "Parquet is not written; write CSV with `-o {folder}/points.csv`"),
                ("--output=", "points.json", "-o writes CSV; write JSON with `--json={folder}/points.json`")]:
            ran = demarc("sweep", "export", database, f"{option}{self.folder / name}")
            self.assertEqual(ran.returncode, 1, (option, name))
            self.assertIn(message.format(folder=self.folder), ran.stderr)
            self.assertFalse((self.folder / name).exists(), (option, name))
        self.assertEqual(demarc("sweep", "export", database, "-o", self.folder / "points.csv").returncode, 0)
        self.assertTrue((self.folder / "points.csv").read_text().startswith("policy,points,antt_mean,stp_mean\n"))
        self.assertEqual(demarc("sweep", "export", database, f"--json={self.folder / 'points.json'}").returncode, 0)
        self.assertEqual(json.loads((self.folder / "points.json").read_text())["schema"], "demarc.sweep.export/1")

    def test_an_example_runs_and_keeps_its_numbers(self):
        database = self.folder / "dispatch.db"
        ran = demarc("sweep", "run", ROOT / "examples/sweeps/dispatch.json", "--db", database, "--max-points", "3", "--jobs", "1")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("3 of 810 points, 3 of them now", ran.stdout)
        opened = sqlite3.connect(database)
        self.addCleanup(opened.close)
        self.assertEqual(opened.execute("SELECT count(antt), count(stp), count(finished) FROM points").fetchone(), (3, 3, 3))

    def test_a_point_finds_no_card(self):
        plan = self.plan(1, command=["topo", "--device", "cuda:{seed}", "--json"], axes={"seed": [0]}, keep={"n": "/name"},
                         aggregate={"over": [], "statistics": []})
        ran = subprocess.run([BUILD / "demarc", "sweep", "run", plan], capture_output=True, text=True, check=False, timeout=60,
                             env=os.environ | {"DEMARC_LIBCUDA": str(BUILD / "libdemarc_fake_libcuda.so")})
        self.assertEqual(ran.returncode, 3)
        self.assertIn("/no-card-within-a-sweep", self.points(self.folder / "plan.db"))

    def test_wrong_input_is_refused_and_nothing_is_written(self):
        for arguments, message in [(["run"], "plan is required"), (["show", "none.db"], "none.db: there is no such file"),
                                   (["run", "none.json"], "none.json"), ([], "subcommand is required"),
                                   (["export", "none.db", "--provenance"], "--provenance belongs to --points")]:
            ran = demarc("sweep", *arguments)
            self.assertEqual(ran.returncode, 1, arguments)
            self.assertIn(message, ran.stderr + ran.stdout)
        plan = self.plan(2, keep={})
        self.assertEqual(demarc("sweep", "run", plan).returncode, 1)
        self.assertFalse((self.folder / "plan.db").exists())


if __name__ == "__main__":
    unittest.main()
