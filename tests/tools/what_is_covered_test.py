"""tools/what-is-covered.py: it finds the tests of C++ and of Python, and says them as sentences."""

import importlib.util
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("covered", ROOT / "tools" / "what-is-covered.py")
covered = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(covered)


class Sentences(unittest.TestCase):
    def test_have_the_suite_in_words(self):
        self.assertEqual(covered.spaced("WholeServers"), "Whole servers")
        self.assertEqual(covered.spaced("TheL2OfAnH100"), "The L2 of an H100")
        self.assertEqual(covered.spaced("PTX"), "PTX")

    def test_are_found_whatever_kind_of_test_it_is(self):
        text = "TEST(A, b_c) {\n  TEST_P(A,\n         d) {\nRC_GTEST_PROP(B, e_f, (int x)) {\n// about TEST(C, g)\n"
        self.assertEqual(covered.tests_of(text), [("A", "b_c"), ("A", "d"), ("B", "e_f")])

    def test_of_python_belong_to_their_class(self):
        text = "class Words(unittest.TestCase):\n    def setUp(self):\n    def test_are_read(self):\n    def helper(self):\n"
        self.assertEqual(covered.tests_of(text, python=True), [("Words", "are_read")])

    def test_stand_under_their_room_and_file(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("a/b_test.cpp", "TEST(WholeServers, end_by_themselves) {}"), ("a/fixture.hpp", "TEST(X, y)"),
                               ("c/d/e_test.py", "class Rows(unittest.TestCase):\n    def test_are_added(self):\n"),
                               ("c/empty_test.cpp", "")):
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            page = covered.page(covered.rooms_of(Path(folder)))
        self.assertIn("in 2 sentences", page)
        self.assertIn("- [a](#a): 1\n- [c](#c): 1\n", page)
        self.assertIn("## a\n\n### `tests/a/b_test.cpp`\n- Whole servers end by themselves.\n", page)
        self.assertIn("### `tests/c/d/e_test.py`\n- Rows are added.\n", page)
        self.assertNotIn("fixture", page)


if __name__ == "__main__":
    unittest.main()
