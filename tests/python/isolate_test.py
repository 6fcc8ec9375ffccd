"""Results of `demarc isolate`: what is read of its files, and what is wrong with others, by file and line."""
import copy
import json
import subprocess
import tempfile
import unittest
from pathlib import Path

from demarc import Error, isolate
from support import BUILD, ROOT

TABLE = ROOT / "docs/measurements/isolate-h200-domains.csv"
HEAD = "mode,victim,aggressor,runs,kernels_mean_us,kernels_p50_us,kernels_worst_us,run_mean_us,run_worst_us"
TIMES = {"count": 3, "mean": 2000.0, "p50": 1500.0, "p99": None, "worst": 4000.0}
CELL = {"mode": "none", "victim": "mm", "aggressor": None, "times_ns": TIMES, "run_times_ns": TIMES | {"p99": 5000}}
STUDY = {"schema": "demarc.isolate/4", "errors": ["one"], "impossible": ["x"], "cells": [CELL, {"error": "wrong output"}],
         "modes": [{"mode": "none"}, {"mode": "mps", "unavailable": "no daemon"}]}


class Isolate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, text, name="t.csv"):
        path = self.folder / name
        path.write_text(text)
        return path

    def refused(self, text, words, name="t.csv"):
        path = self.file(text, name)
        with self.assertRaises(Error) as caught:
            isolate.read(path)
        self.assertEqual(str(caught.exception), f"{path}{words}")
        self.assertEqual(caught.exception.code, 1)

    def test_the_expected_figures_can_be_compared_with(self):
        baseline = ROOT / "docs/measurements/isolate-h200-baseline.json"
        command = [BUILD / "demarc", "isolate", "--device", "planted:h100", "--baseline", baseline, "--json"]
        outcome = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        seen = json.loads(outcome.stdout)["comparison"]
        self.assertEqual(len(seen["cells"]) + len(seen["only_before"]), 3 * 15 * 10 + 15)

    def test_a_table_of_cells_is_read_whole(self):
        study = isolate.read(str(TABLE))
        self.assertEqual(len(study.cells), len(TABLE.read_text().splitlines()) - 1)
        self.assertEqual(study.cells[1], isolate.Cell("mask+color", "mm", "mm", 550, 5495.43, 5495.30, None, 5506.82,
                                                      5495.43, None, 5506.82))
        self.assertEqual((study.errors, study.unavailable, study.path), ((), {}, str(TABLE)))
        self.assertTrue(any(cell.kernels_p99_us and cell.run_p99_us for cell in study.cells))

    def test_a_slowdown_is_the_mean_beside_an_aggressor_over_that_beside_idle_neighbours(self):
        study = isolate.read(self.file(f"{HEAD}\nm,v,-,9,200,1,1,1,1\nn,v,a,9,600,1,1,1,1\nm,v,a,9,250,1,1,1,1\n"))
        self.assertEqual(study.slowdown("m", "v", "a"), 1.25)
        self.assertEqual(study.cell("m", "v").kernels_mean_us, 200)
        with self.assertRaisesRegex(Error, "there is no cell of v next to idle neighbours under n$"):
            study.slowdown("n", "v", "a")
        with self.assertRaisesRegex(Error, "there is no cell of w next to a under m$"):
            study.cell("m", "w", "a")

    def test_what_is_wrong_in_a_table_has_its_file_and_line(self):
        self.refused("a,b\n", ":1: there is no column 'mode': this is no table of cells")
        self.refused("", ":1: there is no column 'mode': this is no table of cells")
        self.refused(HEAD + ",other\n", ":1: the column 'other' is not known")
        row = "m,v,-,9,1,1,1,1,1\n"
        self.refused(f"{HEAD}\n{row}m,v,-,9,1,1,1,1\n", ":3: 8 columns instead of 9")
        self.refused(f"{HEAD}\n{row}{row}m,v,-,9.5,1,1,1,1,1\n", ":4: runs: '9.5' is not a number")
        self.refused(f"{HEAD}\nm,v,-,9,x,1,1,1,1\n", ":2: kernels_mean_us: 'x' is not a number")
        self.refused(f"{HEAD}\nm,v,-,9,1,,1,1,1\n", ":2: kernels_p50_us: '' is not a number")

    def test_a_file_that_cannot_be_read_is_named(self):
        with self.assertRaisesRegex(Error, "^/none/t.csv: No such file or directory$"):
            isolate.read("/none/t.csv")
        (self.folder / "t.csv").write_bytes(b"\xff\n")
        with self.assertRaisesRegex(Error, "t.csv: 'utf-8' codec can't decode byte 0xff"):
            isolate.read(self.folder / "t.csv")

    def test_the_json_of_a_study_is_read_with_what_it_could_not_say(self):
        study = isolate.read(self.file(json.dumps(STUDY), "s.json"))
        self.assertEqual(study.cells, (isolate.Cell("none", "mm", None, 3, 2.0, 1.5, None, 4.0, 2.0, 5.0, 4.0),))
        self.assertEqual(study.errors, ("one", f"{self.folder}/s.json: cells[1]: wrong output"))
        self.assertEqual(study.impossible, ("x",))
        self.assertEqual(study.unavailable, {"mps": "no daemon"})

    def test_what_demarc_isolate_writes_is_read(self):
        path = self.folder / "study.json"
        subprocess.run([BUILD / "demarc", "isolate", "--device", "sim:gtx1080", "--victims", "va", "--aggressors", "va",
                        "--modes", "none", f"--json={path}"], check=True, capture_output=True)
        study = isolate.read(path)
        self.assertEqual([(cell.mode, cell.victim, cell.aggressor) for cell in study.cells],
                         [("none", "va", None), ("none", "va", "va")])
        self.assertGreater(study.slowdown("none", "va", "va"), 1)

    def test_what_is_wrong_in_the_json_has_its_place(self):
        self.refused('{\n "schema": 1,\n}', ":3: Expecting property name enclosed in double quotes", "s.json")
        other = ": the schema is not demarc.isolate/4, which demarc isolate --json writes"
        self.refused("[]", other, "s.json")
        self.refused(json.dumps(STUDY | {"schema": "demarc.isolate", "version": 2}), other, "s.json")
        self.refused(json.dumps(STUDY | {"schema": "x"}), other, "s.json")
        for key in ("cells", "errors", "modes"):
            self.refused(json.dumps(STUDY | {key: None}), f": '{key}' is missing, or no list", "s.json")
        for change, words in (({"times_ns": {}}, "'mean' is missing"), ({"times_ns": 7}, "an object was expected"),
                              ({"times_ns": TIMES | {"p50": None}}, "times_ns.p50: None is not a number"),
                              ({"run_times_ns": TIMES | {"worst": "x"}}, "run_times_ns.worst: 'x' is not a number"),
                              ({"times_ns": TIMES | {"mean": True}}, "times_ns.mean: True is not a number")):
            study = copy.deepcopy(STUDY)
            study["cells"][0].update(change)
            self.refused(json.dumps(study), f": cells[0]: {words}", "s.json")
        self.refused(json.dumps(STUDY | {"cells": [{"mode": "none"}]}), ": cells[0]: 'times_ns' is missing", "s.json")
        self.refused(json.dumps(STUDY | {"cells": [3]}), ": cells[0]: an object was expected", "s.json")


if __name__ == "__main__":
    unittest.main()
