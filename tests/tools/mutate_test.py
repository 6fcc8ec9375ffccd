"""The fault injector: what its patterns change, what they leave alone, and what it says of four planted faults."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "mutate"))

specification = importlib.util.spec_from_file_location("mutate", ROOT / "tools" / "mutate" / "__main__.py")
mutate = importlib.util.module_from_spec(specification)
specification.loader.exec_module(mutate)

from bench import Bench  # noqa: E402
from patterns import sites_of_line  # noqa: E402
from sample import Fault, choose, faults_by_line  # noqa: E402
from source import code_lines  # noqa: E402
from switches import VARIABLE, switched, with_switches  # noqa: E402
from trial import Kill, Program, Run, Suite, failed_test, groups, killer, run_clean  # noqa: E402


def changed(text, line=0):
    """What a line of `text` can become, by pattern."""
    lines = text.split("\n")
    found = {}
    for site in sites_of_line(code_lines(text), line):
        after = lines[line][:site.start] + site.text + lines[line][site.end:]
        found.setdefault(site.kind, []).append(after.strip())
    return found


class Patterns(unittest.TestCase):
    def expect(self, kind, text, *becomes, line=0):
        self.assertEqual(changed(text, line).get(kind, []), list(becomes))

    def test_every_pattern_finds_its_line(self):
        self.expect("relation", "  if (a < b) f();", "if (a <= b) f();", "if (a >= b) f();")
        self.expect("relation", "  return a == b;", "return a != b;")
        self.expect("and, or", "  return a && b;", "return a || b;")
        self.expect("not", "  if (!done) go();", "if (done) go();")
        self.expect("arithmetic", "  x = a + b;", "x = a - b;")
        self.expect("arithmetic", "  x = a % b;", "x = a / b;")
        self.expect("bits", "  x = a & b;", "x = a | b;")
        self.expect("bits", "  x = a << b;", "x = a >> b;")
        self.expect("constant", "  take(1U);", "take(0U);", "take(2U);")
        self.expect("constant", "  take(200);", "take(100);", "take(400);")
        self.expect("truth", "  return true;", "return false;")
        self.expect("extreme", "  x = std::min(a, b);", "x = std::max(a, b);")
        self.expect("count dropped", "  ++report.lost;", "{}")
        self.expect("count dropped", "  lost_.fetch_add(n);", "{}")
        self.expect("assignment erased", "  report.held = held;", "{}")
        self.expect("call erased", "  if (bad) report.push_back(bad);", "if (bad) {}")
        self.expect("early end dropped", "  if (found) break;\n  x();", "if (found) {}")

    def test_the_first_value_of_what_a_call_fills_in_is_none(self):
        self.expect("constant", "  int free = 0;\n  int total = 0;\n  check(get(&free, &total));")
        self.expect("constant", "  int free = 0;\n  check(get(&freedom));", "int free = 1;")
        self.expect("constant", "  int n = 2;\n  n += take();", "int n = 1;", "int n = 3;")

    def test_a_refusal_is_dropped_and_its_guard_never_true(self):
        text = "  if (n == 0) {\n    return invalid_input(\"none\",\n                         n);\n  }\n  return n;"
        self.expect("guard never true", text, "if (false && (n == 0)) {")
        self.expect("refusal dropped", text, 'if (false) return invalid_input("none",', line=1)
        self.expect("guard never true", '  if (n) return check_failed("x");',
                    'if (false && (n)) return check_failed("x");')
        self.expect("check dropped", "  DEMARC_CHECK(prove(\n      mask));\n  return {};",
                    "if (false) DEMARC_CHECK(prove(")

    def test_the_last_statement_of_a_function_is_no_refusal_to_drop(self):
        self.expect("refusal dropped", 'f() {\n  return invalid_input("x");\n}', line=1)
        self.expect("early end dropped", "f() {\n  return {};\n}", line=1)

    def test_what_is_no_code_is_left_alone(self):
        for text in ("// a < b", "/* 1\n 2 */", 'const T t = "a < 1";', "static_assert(a < 1);", "#if A < 1",
                     "using X = Y<1>;", "#define A(x) \\\n  x < 1", 'const char* t = R"(\n1 < 2\n)";'):
            for line in range(text.count("\n") + 1):
                self.assertEqual(changed(text, line), {}, text)

    def test_what_another_machine_compiles_is_left_alone(self):
        text = "#if defined(__x86_64__)\nx = a < b;\n#elif defined(__aarch64__)\nx = a < b;\n#else\n#endif\nx = a < b;"
        self.assertEqual([bool(line.strip()) for line in code_lines(text, "x86_64")],
                         [False, True, False, False, False, False, True])
        self.assertEqual(code_lines(text, "aarch64")[3], "x = a < b;")

    def test_templates_references_and_ends_of_statements_are_not_mistaken(self):
        self.assertEqual(changed("std::vector<int> f(const A& a, B* b);"), {})
        self.expect("call erased", "  f(a,\n    g(b));", line=1)
        self.expect("early end dropped", "  case a:\n    break;\n  }", line=1)

    def test_what_nobody_can_notice_is_left_alone(self):
        self.assertEqual(changed("  names.reserve(2 * (count + 1));"), {})
        self.assertEqual(changed("  names.reserve(first +\n      count - 1);", 1), {})
        self.assertEqual(changed("  report_progress(progress,\n      done + 1);", 1), {})
        self.expect("arithmetic", "  x = AddressRange::reserve(a + b);", "x = AddressRange::reserve(a - b);")


class Sampling(unittest.TestCase):
    texts = {"a.cpp": "\n".join(f"  x{n} = a < b;" for n in range(60)),
             "b.cpp": "\n".join(f"  y{n} = a + b;" for n in range(20))}

    def test_the_same_seed_chooses_the_same_faults_and_another_does_not(self):
        self.assertEqual(choose(self.texts, 10, 3), choose(self.texts, 10, 3))
        self.assertNotEqual(choose(self.texts, 10, 3), choose(self.texts, 10, 4))

    def test_files_get_faults_by_their_lines(self):
        files = [fault.file for fault in choose(self.texts, 40, 1)]
        self.assertEqual((files.count("a.cpp"), files.count("b.cpp")), (30, 10))

    def test_no_line_is_chosen_twice(self):
        self.assertEqual(len({(f.file, f.line) for f in choose(self.texts, 500, 1)}), 80)

    def test_a_fault_changes_one_line(self):
        fault = faults_by_line("a.cpp", "one;\n  x = a < b;\nthree;")[0][0]
        after = fault.apply("one;\n  x = a < b;\nthree;").split("\n")
        self.assertEqual((after[0], after[2], after[1] == fault.after), ("one;", "three;", True))


class Files(unittest.TestCase):
    def test_are_those_that_are_wanted_and_not_those_that_are_not(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a.cpp", "b.cpp", "gpu/a.cpp", "a.hpp"):
                path = Path(folder) / "src" / "room" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("text")
            chosen = lambda *words: sorted(mutate.texts_of(Path(folder), "room", *words))
            self.assertEqual(chosen("", ""), ["src/room/a.cpp", "src/room/b.cpp", "src/room/gpu/a.cpp"])
            self.assertEqual(chosen("a.cpp", "gpu/"), ["src/room/a.cpp"])
            self.assertEqual(chosen("", "gpu/,b."), ["src/room/a.cpp"])

    def test_of_a_part_are_those_of_its_room_that_the_part_names(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("emulate/races.cpp", "emulate/ops/warp.cpp", "emulate/ops/image.cpp", "guest/process/a.cpp", "guest/b.cpp"):
                path = Path(folder) / "src" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("text")
            chosen = lambda room: sorted(mutate.texts_of(Path(folder), room, "", ""))
            self.assertEqual(chosen("emulate/warps"), ["src/emulate/ops/warp.cpp", "src/emulate/races.cpp"])
            self.assertEqual(chosen("guest/process"), ["src/guest/process/a.cpp"])
            self.assertEqual(mutate.targets_of("guest/process", False), ["demarc_exec_tests", "demarc_guest_tests"])

    def test_with_definitions_are_not_read_before_others(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "src" / "room").mkdir(parents=True)
            (Path(folder) / "src" / "room" / "a.cpp").write_text("#include <fmt/format-inl.h>\n#include <map>\n")
            self.assertEqual(Bench(Path(folder), "b", "room", [], [])._begins(), ["<map>"])


class Switches(unittest.TestCase):
    def test_keep_the_line_and_the_fault(self):
        for before, after, line in (
                ("  n += 1;", "  {}", "if (demarc_fault == 7) { {} } else { n += 1; }"),
                ("  return a < b;", "  return a <= b;", "if (demarc_fault == 7) { return a <= b; } else { return a < b; }"),
                ("  if (a < b) {", "  if (a <= b) {",
                 "  if (demarc_fault == 7 ? static_cast<bool>(a <= b) : static_cast<bool>(a < b)) {"),
                ("  for (int i = 0; i < n; ++i) {", "  for (int i = 0; i <= n; ++i) {",
                 "  for (int i = 0; demarc_fault == 7 ? static_cast<bool>(i <= n) : static_cast<bool>(i < n); ++i) {"),
                ("  const auto x = a + b;", "  const auto x = a - b;", "  const auto x = demarc_fault == 7 ? (a - b) : (a + b);"),
                ("constexpr int limit = 5;  // of them", "constexpr int limit = 4;  // of them",
                 "const int limit = demarc_fault == 7 ? (4) : (5);")):
            self.assertEqual(switched(before, after, 7), line)

    def test_are_not_where_they_would_change_what_the_line_means(self):
        for before, after, following in (
                ("  const Lock lock(a + b);", "  const Lock lock(a - b);", ""),  # it would end at once
                ("  if (a) b = 1;", "  if (a) {}", "else {"),
                ("  case 1: return 2;", "  case 1: return 3;", ""),
                ("  DEMARC_TRY(x, f(1));", "  DEMARC_TRY(x, f(2));", ""),
                ("  if (int n = f(); n < 1) {", "  if (int n = f(); n <= 1) {", ""),
                ("      a && b);", "      a || b);", ""),
                ("  for (int i = 0; i < 3; ++i) {", "  for (int i = 1; i < 3; ++i) {", "")):
            self.assertIsNone(switched(before, after, 7, following), before)

    def test_are_one_for_a_line_and_none_within_a_statement_of_several_lines(self):
        text = "int f(int a) {\n  a += 1;\n  return a +\n         1;\n}\n"
        fault = lambda line, before, after: Fault("a.cpp", line, "kind", before, after)
        made, placed = with_switches(text, {1: fault(2, "  a += 1;", "  a -= 1;"), 2: fault(2, "  a += 1;", "  {}"),
                                            3: fault(4, "         1;", "         2;")})
        self.assertEqual(placed, {1})
        self.assertIn("if (demarc_fault == 1) { a -= 1; } else { a += 1; }\n  return a +\n         1;", made)

    def test_that_do_not_compile_are_left_out_and_the_others_tell_what_is_on(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder)
            (tree / "src" / "room").mkdir(parents=True)
            text = "int two() {\n  int n = 1;\n  n += 1;\n  n += 0;\n  return n;\n}\n"
            (tree / "src" / "room" / "a.cpp").write_text(text)
            (tree / "main.cpp").write_text("int two();\nint main() { return two(); }\n")
            (tree / "CMakeLists.txt").write_text(
                "cmake_minimum_required(VERSION 3.16)\nproject(p CXX)\nset(CMAKE_EXPORT_COMPILE_COMMANDS ON)\n"
                "add_library(a STATIC src/room/a.cpp)\nadd_executable(m main.cpp)\ntarget_link_libraries(m a)\n")
            bench = Bench(tree, "b", "room", ["m"], [])
            self.assertIsNone(bench.prepare())
            fault = lambda line, before, after: Fault("src/room/a.cpp", line, "kind", before, after)
            placed = bench.put_together({1: fault(3, "  n += 1;", "  n += 7;"), 2: fault(4, "  n += 0;", "  n += nothing;"),
                                         3: fault(5, "  return n;", "  return 5;")})
            self.assertEqual(placed, {1, 3})
            run = lambda number: subprocess.run([str(tree / "build" / "b" / "m")],
                                                env={**os.environ, VARIABLE: number}).returncode
            self.assertEqual([run(number) for number in ("0", "1", "2", "3")], [2, 8, 2, 5])
            bench.restore()
            subprocess.run(bench._ninja(), check=True, capture_output=True)
            self.assertEqual(run("1"), 2)


class Trials(unittest.TestCase):
    def test_likely_suites_come_first_and_cheap_ones_before_dear_ones(self):
        suites = [Suite("Cheap", 0.1), Suite("Named", 5.0), Suite("Dear", 9.0)]
        self.assertEqual(groups(Program([], suites=suites), {"Named"}), [["Named"], ["Cheap"], ["Dear"]])

    def test_the_killing_test_is_named_with_how_it_ended(self):
        begun = "[ RUN      ] Sum.Adds\n"
        self.assertEqual(failed_test(Run(1, begun + "[  FAILED  ] Sum.Adds (0 ms)", 0, 0, False)), "Sum.Adds")
        self.assertEqual(failed_test(Run(-11, begun, 0, 0, False)), "Sum.Adds (signal 11)")
        self.assertEqual(failed_test(Run(-9, begun, 0, 0, True)), "Sum.Adds (time limit)")

    def test_an_assertion_behind_a_crash_is_found_and_a_crash_alone_is_none(self):
        # Stands for a GoogleTest program: Sum.Adds crashes, and Sum.Subtracts, if there, fails behind it.
        script = ("import os, sys\n"
                  "if 'Sum.Adds' not in sys.argv[-1].rsplit('-', 1)[1]:\n"
                  "    print('[ RUN      ] Sum.Adds', flush=True); os.kill(os.getpid(), 11)\n"
                  "if '%s': print('[  FAILED  ] Sum.Subtracts (0 ms)'); sys.exit(1)\n")
        for behind, kill in (("yes", Kill("Sum.Subtracts", True)), ("", Kill("Sum.Adds (signal 11)", False))):
            program = Program([sys.executable, "-c", script % behind], suites=[Suite("Sum", 0.1), Suite("More", 0.2)],
                              processor_s=1, clock_s=1)
            self.assertEqual(killer([program], {"Sum", "More"}), kill)

    def test_a_program_that_fails_without_a_fault_is_told(self):
        self.assertIn("fails without a fault", run_clean(Program(["false"]), 10))


PLANTED = """\
#include <cstdio>
#include <cstdlib>
int sum(int n) {
  int total = 0;
  for (int i = 1; i <= n; ++i) {
    total = total + i;
  }
  return total;
}
int unseen() { return 7; }
int main() {
  std::puts("[ RUN      ] Sum.AddsUp");
  std::fflush(stdout);
  if (sum(4) == 10) return 0;
  std::puts("[  FAILED  ] Sum.AddsUp (0 ms)");
  return 1;
}
"""


class PlantedBench:
    """Stands for a build: one file, one command."""

    def __init__(self, folder):
        self.program = str(folder / "planted")
        self.source = folder / "planted.cpp"
        self.build(PLANTED)

    def build(self, text):
        self.source.write_text(text)
        return subprocess.run([os.environ.get("CXX", "c++"), "-w", "-o", self.program, str(self.source)],
                              capture_output=True).returncode == 0

    def put(self, fault):
        return self.build(fault.apply(PLANTED))

    def restore(self):
        self.build(PLANTED)


class Planted(unittest.TestCase):
    def planted(self, line, before, after):
        text = PLANTED.split("\n")[line - 1]
        return Fault("planted.cpp", line, "planted", text, text.replace(before, after))

    def test_a_killed_a_surviving_a_hanging_and_a_broken_fault_are_told_apart(self):
        faults = [self.planted(6, "+", "-"), self.planted(10, "7", "8"), self.planted(5, "++i", "i"),
                  self.planted(8, "total", "nothing")]
        with tempfile.TemporaryDirectory() as folder:
            bench = PlantedBench(Path(folder))
            program = Program([bench.program])
            self.assertIsNone(run_clean(program))
            program.processor_s = -0.9  # a time limit of half a second instead of five
            judge = mutate.Judge(faults, {}, show=lambda *_, **__: None)
            judge.work(bench, [program])
        self.assertEqual(judge.trouble, [])
        self.assertEqual([result[1:] for result in judge.results],
                         [("killed", "Sum.AddsUp"), ("survived", None), ("only hung or crashed", "Sum.AddsUp (time limit)"),
                          ("did not compile", None)])
        lines, reached = mutate.summary(judge.results, "partition")
        self.assertEqual(lines[0], "only hung or crashed: planted.cpp:5: planted: for (int i = 1; i <= n; i) {")
        self.assertEqual(lines[1], "survived: planted.cpp:10: planted: int unseen() { return 8; }")
        self.assertEqual(lines[2], "partition: 1 of 3 faults killed (33.3 %, to reach: 90 %), 1 did not compile")
        self.assertFalse(reached)

    def test_the_bar_is_reached_at_its_share_and_not_by_nothing(self):
        fault = self.planted(6, "+", "-")
        self.assertTrue(mutate.summary([(fault, "killed", "a.b")] * 9 + [(fault, "survived", None)], "card")[1])
        self.assertFalse(mutate.summary([(fault, "killed", "a.b")] * 8 + [(fault, "survived", None)], "card")[1])
        self.assertTrue(mutate.summary([(fault, "killed", "a.b")] * 8 + [(fault, "survived", None)], "sim")[1])
        self.assertFalse(mutate.summary([(fault, "did not compile", None)], "sim")[1])


if __name__ == "__main__":
    unittest.main()
