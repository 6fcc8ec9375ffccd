"""tools/programs/count-refused.py on planted programs: each is counted once, by its code alone."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import ROOT

TOOL = ROOT / "tools" / "programs" / "count-refused.py"
PROGRAMS = {
    "plain/main.cu": "// cudaMallocManaged\n__global__ void k(float* x) { x[0] = 1; }\nint main() { printf(\"tex2D(\"); k<<<1, 1>>>(nullptr); }\n",
    "prints/main.cu": "__device__ void say() { if (true) { printf(\"%d\", 1); } }\n__global__ void k() { say(); }\n",
    "managed/main.cpp": "int main() { cudaMallocManaged(&x, 4); }\n",
    "managed/kernels/k.cu": "/* this_grid() */ __global__ void k();\n__global__ void k() { cg::this_grid().sync(); }\n",
    "nested/main.cu": "__global__ void child() {}\n__global__ void k() { child<<<1, 1>>>(); }\n",
    "host/main.cpp": "int main() { cudaMallocManaged(&x, 4); }\n",
}


class CountRefused(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def plant(self, programs):
        for name, text in programs.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def count(self, *arguments):
        return subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True, check=False)

    def table(self, name="x"):
        ran = self.count(f"{name}={self.folder}")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in ran.stdout.splitlines()]
        return rows[0], {row[0]: int(row[1]) for row in rows[2:]}

    def test_a_program_counts_once_by_its_code_and_not_by_comments_or_strings(self):
        self.plant(PROGRAMS)
        head, counts = self.table()
        self.assertEqual(head[1], "x, 4 programs")
        expected = {"`printf` in a kernel": 1, "managed memory": 1, "a barrier of the whole grid": 1, "kernels that launch kernels": 1,
                    "none of these": 1}
        self.assertEqual({what: count for what, count in counts.items() if count}, expected)

    def test_of_programs_in_several_languages_those_in_cuda_count(self):
        self.plant({"a-cuda/main.cu": PROGRAMS["nested/main.cu"], "a-hip/main.cu": PROGRAMS["nested/main.cu"]})
        head, counts = self.table("bench")
        self.assertEqual((head[1], counts["kernels that launch kernels"]), ("bench, 1 programs", 1))

    def test_a_folder_without_programs_is_an_error_that_names_it(self):
        self.plant({"host/main.cpp": PROGRAMS["host/main.cpp"]})
        ran = self.count(f"x={self.folder}")
        self.assertEqual((ran.returncode, ran.stderr), (1, f"count-refused.py: {self.folder}: no program has a kernel\n"))
        for wrong in ("nowhere", "x=/nowhere"):
            ran = self.count(wrong)
            self.assertEqual(ran.returncode, 1)
            self.assertIn(f"{wrong}: a name and a folder were expected", ran.stderr)


if __name__ == "__main__":
    unittest.main()
