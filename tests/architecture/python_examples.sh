#!/usr/bin/env bash
# Every script in examples/pytorch parses and has a --help; without PyTorch, or a card, it says which is missing and ends
# with 2. usage: python_examples.sh PYTHON
set -euo pipefail
cd "$(dirname "$0")/../../examples/pytorch"
export PYTHONDONTWRITEBYTECODE=1 CUDA_VISIBLE_DEVICES=
fail() { echo "python_examples: $1" >&2; exit 1; }
for script in *.py; do
  "$1" -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$script"
done
for script in cards.py decoder.py detector.py resnet.py flood.py measure.py tenants.py; do
  "$1" "$script" --help | grep -q '^usage: ' || fail "$script --help says no usage"
done
for command in 'detector.py --frames 1' 'decoder.py --prefill --frames 1' 'resnet.py --frames 1' 'flood.py adds --compile' 'cards.py 0'; do
  code=0; said=$("$1" $command 2>&1) || code=$?
  [ $code = 2 ] || fail "$command ends with $code where it lacks something: $said"
  grep -qE '^PyTorch (is missing|finds no GPU) here' <<<"$said" || fail "$command does not say what is missing: $said"
done
code=0; said=$("$1" measure.py nothing 2>&1) || code=$?
[[ $code = 2 && $said == *"'nothing' is not a part"* ]] || fail "measure.py takes a part that there is not ($code): $said"
code=0; said=$("$1" measure.py --demarc missing 2>&1) || code=$?
[[ $code = 1 && $said == *"missing: there is no such program"* ]] || fail "measure.py starts without the program ($code): $said"
code=0; said=$("$1" tenants.py --ways masks 2>&1) || code=$?
[[ $code = 2 && $said == *"--ways masks: there are mps, percent, green, mask, tenant"* ]] || fail "tenants.py takes a way that there is not ($code): $said"
code=0; said=$("$1" tenants.py --demarc missing 2>&1) || code=$?
[[ $code = 1 && $said == *"missing: there is no such program"* ]] || fail "tenants.py starts without the program ($code): $said"
code=0; said=$("$1" tenants.py --demarc "$(command -v "$1")" --steps missing 2>&1) || code=$?
[[ $code = 1 && $said == *"missing: there is no such program"* ]] || fail "tenants.py starts without its CUDA program ($code): $said"
code=0; said=$("$1" flood.py copies --compile 2>&1) || code=$?
[[ $code = 2 && $said == *"--compile copies: the driver makes them"* ]] || fail "flood.py compiles copies ($code): $said"
