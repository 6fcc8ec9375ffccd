#!/usr/bin/env bash
# Installs what building and testing needs (Debian 12, Ubuntu 24.04), or prints the command to run. It lists the packages
# first, and asks if it is started by a person: both its input and its output are a terminal.
# usage: install-packages.sh build|bench|test   each with those before it
set -euo pipefail
what=${1:-build}
[[ $what =~ ^(build|bench|test)$ ]] || { echo "install-packages.sh: '$what' is none of build, bench, test" >&2; exit 1; }

build_packages=(g++ cmake ninja-build ccache git ca-certificates dpkg-dev file
  libfmt-dev nlohmann-json3-dev libexpected-dev libcli11-dev libeigen3-dev libxxhash-dev libzstd-dev liblz4-dev libsqlite3-dev libnlopt-cxx-dev libboost-dev
  libtomlplusplus-dev prometheus-cpp-dev libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev protobuf-compiler)
bench_packages=(libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev)
test_packages=(clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev lld-14 python3 python3-numpy pkg-config libopenmpi-dev openmpi-bin zsh fish groff-base)

packages=("${build_packages[@]}")
[[ $what =~ ^(bench|test)$ ]] && packages+=("${bench_packages[@]}")
[ "$what" = test ] && packages+=("${test_packages[@]}")
# What runs tools/isolate-tables.py.
if [ "$what" = test ]; then command -v python3 >/dev/null || packages+=(python3); fi
# The browser that opens the reports in the tests. Ubuntu ships it as a snap only.
. /etc/os-release
if [ "$what" = test ] && [ "${ID:-}" = debian ]; then packages+=(chromium); fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" = 0 ]; then as_root=(); else as_root=(sudo -n); fi
if [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; then
  echo "These packages are missing, and apt-get installs them: ${missing[*]}"
  # A terminal without a person, as of a container or of continuous integration, is not asked.
  if [ -t 0 ] && [ -t 1 ] && [ -z "${CI:-}" ] && [ "${DEBIAN_FRONTEND:-}" != noninteractive ]; then
    read -r -t 120 -p "Install them? [Y/n] " answer || answer=n
    [[ ${answer:-y} =~ ^[Yy] ]] || { echo "install-packages.sh: nothing was installed, because the answer was '$answer'" >&2; exit 2; }
  fi
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
else
  echo "Packages are missing. Run this, then call make again:" >&2
  echo "  sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}" >&2
  exit 2
fi
