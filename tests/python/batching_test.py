"""Continuous batching of examples/pytorch/batching.py with a step that is played: who runs when, and what is answered."""
import subprocess
import sys
import types
import unittest

from support import ROOT

sys.path.insert(0, str(ROOT / "examples" / "pytorch"))
import batching  # noqa: E402


def asked(**changes):
    return types.SimpleNamespace(**({"rate": 1e15, "requests": 5, "prompt": 3, "seed": 1} | changes))


class Steps:
    """A step whose next token is the sum of the tokens of that slot so far."""

    def __init__(self):
        self.given, self.sums = [], {}

    def __call__(self, tokens, places):
        self.given.append((tokens, places))
        for slot, (token, place) in enumerate(zip(tokens, places)):
            self.sums[slot] = token + (self.sums.get(slot, 0) if place else 0)
        return [self.sums[slot] for slot in range(len(tokens))]


class Batching(unittest.TestCase):
    def run_all(self, slots, output, **changes):
        step = Steps()
        return step, batching.answer(step, batching.requests(asked(**changes)), slots, output)

    def test_answers_do_not_depend_on_who_runs_beside(self):
        answers = [sorted((request.answer.due, request.tokens) for request in self.run_all(slots, 4)[1]) for slots in (1, 2, 8)]
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(answers[0], answers[2])
        self.assertEqual(len(answers[0]), 5)

    def test_an_answer_follows_from_the_prompt_and_its_own_tokens(self):
        _, (request, *_) = self.run_all(1, 3)
        total, wanted = sum(request.prompt), []
        for _ in range(3):
            wanted.append(total)
            total += wanted[-1]
        self.assertEqual(request.tokens, wanted)
        self.assertEqual((request.answer.made, len(request.answer.tokens)), (3, 3))
        self.assertEqual(request.answer.tokens, sorted(request.answer.tokens))

    def test_a_slot_that_becomes_free_is_taken_at_the_next_step(self):
        step, _ = self.run_all(2, 4, requests=4)
        self.assertEqual(len(step.given), 2 * (3 + 4 - 1))
        for _, places in step.given:
            self.assertEqual(places[0], places[1])

    def test_idle_slots_read_a_token_at_the_first_place(self):
        step, _ = self.run_all(4, 2, requests=1)
        self.assertTrue(all(tokens[1:] == [0, 0, 0] and places[1:] == [0, 0, 0] for tokens, places in step.given))

    def test_requests_are_the_same_for_one_seed_and_due_one_after_the_other(self):
        first, again, other = (list(batching.requests(asked(seed=seed, rate=2))) for seed in (1, 1, 2))
        self.assertEqual([r.prompt for r in first], [r.prompt for r in again])
        self.assertNotEqual([r.prompt for r in first], [r.prompt for r in other])
        due = [request.answer.due for request in first]
        self.assertEqual(due, sorted(due))
        self.assertTrue(all(len(request.prompt) == 3 for request in first))

    def test_a_load_that_has_no_end_or_no_figures_is_refused(self):
        for wrong in (["--slots", "0"], ["--requests", "0"], ["--rate", "-1"], ["--rate", "nan"], ["--prompt", "0"], ["--output", "0"],
                      ["--prompt", "2000"]):
            ended = subprocess.run([sys.executable, batching.__file__, *wrong], capture_output=True, text=True)
            self.assertEqual(ended.returncode, 2, wrong)
            self.assertIn(f"{wrong[0]}", ended.stderr.splitlines()[-1])
            self.assertIn("expected", ended.stderr.splitlines()[-1])

    def test_none_starts_before_it_is_due(self):
        step, (request,) = self.run_all(1, 1, requests=1, rate=50)
        self.assertGreaterEqual(request.answer.tokens[0], request.answer.due)


if __name__ == "__main__":
    unittest.main()
