// Work in a process of its own: what becomes of it where the machine has none to give.
#include "driver/in_child.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "supervised.hpp"

namespace demarc::cuda {
namespace {

TEST(WorkInAChild, ThatCannotBeStartedIsSaidSo) {
  EXPECT_EQ(test::Supervised::apart([] {
              const rlimit none{0, 0};
              // Root may have as many as it likes.
              if (::setrlimit(RLIMIT_NPROC, &none) != 0) return 1;
              if (::geteuid() == 0 && ::setuid(65534) != 0) return 2;
              const auto answer = in_child<int>([]() -> Result<int> { return 5; });
              if (answer) return 3;
              const std::string& said = answer.error().message;
              return said.find("cannot start a process: ") == 0 ? 0 : 4;
            }),
            0);
}

TEST(WorkInAChild, BringsItsAnswerOrItsErrorBack) {
  EXPECT_EQ(test::Supervised::apart([] {
              const auto good = in_child<int>([]() -> Result<int> { return 5; });
              const auto bad =
                  in_child<int>([]() -> Result<int> { return check_failed("no {}", 7); });
              return good && *good == 5 && !bad && bad.error().message == "no 7" &&
                             bad.error().kind == ErrorKind::check_failed
                         ? 0
                         : 1;
            }),
            0);
}

}  // namespace
}  // namespace demarc::cuda
