// Sweep files for tests. Their points are carried out by carry_out(), in the place of the program.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "demarc/sweep/plan.hpp"

namespace demarc::sweep::test {

// Axes a (1 to `a`) and b (1, 2); kept: sum, word, nothing. `more`: further keys.
inline Plan small_plan(int a = 3, const std::string& more = "", const std::string& last = "-") {
  return Plan::parse(R"({"schema": "demarc.sweep/1", "command": ["topo", "{a}", "{b}", ")" + last +
                         R"("], "axes": {"a": {"from": 1, "to": )" + std::to_string(a) +
                         R"(, "step": 1}, "b": {"from": 1, "to": 2, "step": 1}},
                         "keep": {"sum": "/s", "word": "/list/n={b}/w", "nothing": "/none"})" +
                         more + "}",
                     "small.json", {})
      .value();
}

// What the third argument asks for where the first one is 2: abort, exit, fail, hang, no-json,
// no-member, rate, kill-parent, wait. "-": nothing.
inline int carry_out(const std::vector<std::string>& arguments) {
  const int a = std::stoi(arguments.at(1));
  const int b = std::stoi(arguments.at(2));
  const std::string& what = arguments.at(3);
  if (a == 2 && what == "abort") {
    ::signal(SIGSEGV, SIG_DFL);  // a sanitizer has its own
    ::raise(SIGSEGV);
  }
  if (a == 2 && what == "exit") std::exit(5);
  if (a == 2 && what == "hang") ::pause();
  if (a == 2 && what == "kill-parent") ::kill(::getppid(), SIGKILL);
  if (a == 2 && what == "fail") {
    std::fputs("first line\nthis is wrong\n\n", stderr);
    return 3;
  }
  if (a == 2 && what == "no-json") {
    std::fputs("a table\n", stdout);
    return 0;
  }
  if (a == 2 && what == "rate") {
    std::fputs(R"({"s": 1, "list": [{"n": 1, "w": "one", "l2_hit_rate": 1.5}]})", stdout);
    return 0;
  }
  if (what == "wait") ::usleep(static_cast<unsigned>(a * b) * 300);
  std::printf(R"({"s": %d, "list": [{"n": 1, "w": "one"}, {"n": 2, "w": "two"}], "none": null})",
              a == 2 && what == "no-member" ? 0 : a * 10 + b);
  return 0;
}

}  // namespace demarc::sweep::test
