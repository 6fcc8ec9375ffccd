// What keeps files where this process has none open, so that they get the number 0.
#include <fcntl.h>
#include <gtest/gtest.h>

#include "demarc/lease/card_claim.hpp"
#include "supervised.hpp"

namespace demarc::cuda {
namespace {

using test::Supervised;

bool is_open(int file) {
  return ::fcntl(file, F_GETFD) >= 0;
}

TEST(FilesOfNumberZero, are_files_like_others_and_are_closed) {
  const auto apart = [](bool (*holds)()) {
    return Supervised::apart([holds] {
      ::close(STDIN_FILENO);
      if (!holds()) return 1;
      return is_open(STDIN_FILENO) ? 2 : 0;
    });
  };
  EXPECT_EQ(apart([] {
              const auto made = Control::create();
              return made && is_open(STDIN_FILENO);
            }),
            0);
  EXPECT_EQ(apart([] {
              ::open("/dev/null", O_RDONLY);
              const Control made = Control::create().value();
              ::close(STDIN_FILENO);
              return Control::open(made.value()).has_value() && made.store_mask({}, true);
            }),
            0);
  EXPECT_EQ(apart([] {
              auto claim = lease::CardClaim::open({"/proc/self/exe"});
              return claim && claim->keep("GPU-of-nobody", lease::ClaimRole::program) &&
                     is_open(STDIN_FILENO);
            }),
            0);
  EXPECT_EQ(apart([] {
              const auto signals = SignalFile::open();
              return signals && is_open(STDIN_FILENO);
            }),
            0);
  EXPECT_EQ(apart([] {
              const int file = install_filter();
              const FilterListener listener(file);
              return file == STDIN_FILENO && is_open(STDIN_FILENO);
            }),
            0);
}

TEST(FilesOfNumberZero, are_left_alone_by_what_has_none) {
  EXPECT_EQ(Supervised::apart([] {
              if (!is_open(STDIN_FILENO)) ::open("/dev/null", O_RDONLY);
              {
                Control control = Control::create().value();
                const Control moved(std::move(control));
                const auto opened = Control::open(moved.value());
                FilterListener listener(::open("/dev/null", O_RDONLY));
                const FilterListener later(std::move(listener));
                auto claim = lease::CardClaim::open({"/proc/self/exe"}).value();
                const lease::CardClaim kept(std::move(claim));
                auto signals = SignalFile::open().value();
                const SignalFile taken(std::move(signals));
              }
              return is_open(STDIN_FILENO) ? 0 : 1;
            }),
            0);
}

TEST(FilterListeners, of_no_filter_hear_and_answer_nothing) {
  FilterListener listener(-1);
  EXPECT_FALSE(listener.receive());
  EXPECT_FALSE(listener.let_pass({}));
  EXPECT_FALSE(listener.answer({}, 0));
}

}  // namespace
}  // namespace demarc::cuda
