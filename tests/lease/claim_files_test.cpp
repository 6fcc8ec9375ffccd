// Claims on files in whose place others were installed, and locks of processes that are not
// programs under Demarc.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "claim_holders.hpp"
#include "demarc/base/files.hpp"
#include "demarc/lease/card_claim.hpp"
#include "not_run.hpp"
#include "own_process.hpp"
#include "paths.hpp"
#include "staying_process.hpp"

namespace demarc::lease {
namespace {

using test::end_process;
using test::passes_in_a_process;
using test::staying_process;
using testing::HasSubstr;

class ClaimFiles : public testing::Test {
 protected:
  ClaimFiles() { install(); }
  void install() const {
    const std::string next = file + ".new";
    EXPECT_TRUE(write_file(next, "a library\n"));
    std::filesystem::rename(next, file);
  }
  // A process with TPC 5 of this card, in the role.
  [[nodiscard]] pid_t program(ClaimRole role = ClaimRole::program) const {
    return staying_process([&] {
      static CardClaim own = CardClaim::open({file}).value();
      EXPECT_TRUE(own.hold("GPU-1", PartOwner::program, {{0x20, 0}, 0}));
      EXPECT_TRUE(own.keep("GPU-1", role));
    });
  }
  [[nodiscard]] std::uint64_t tpcs_seen() const {
    const auto claim = CardClaim::open_all({file});
    EXPECT_TRUE(claim);
    return claim ? claim->others("GPU-1")->of(PartOwner::program).tpcs[0] : 0;
  }
  static void become_another_user() {
    ASSERT_EQ(::setresgid(65534, 65534, 65534), 0);
    ASSERT_EQ(::setresuid(65534, 65534, 65534), 0);
    ASSERT_EQ(::prctl(PR_SET_DUMPABLE, 1), 0);
  }
  std::filesystem::path folder = test::fresh_folder("claim_files");
  std::string file = folder / "libcuda.so.1";
};

TEST_F(ClaimFiles, are_seen_however_others_were_installed_in_their_place) {
  const std::function<void()> ways[] = {
      [&] { install(); },
      [&] {
        std::filesystem::remove(file);
        install();
      },
      [&] {
        std::filesystem::rename(file, folder / "saved");
        install();
      },
      [&] {
        install();
        install();
      },
  };
  for (const auto& way : ways) {
    const pid_t process = program();
    EXPECT_EQ(tpcs_seen(), 0x20U);
    way();
    EXPECT_EQ(tpcs_seen(), 0x20U);
    EXPECT_EQ(CardClaim::open({file})->others("GPU-1")->of(PartOwner::program).tpcs[0], 0U);
    const auto found = CardClaim::open_all({file})->claimers("GPU-1", ClaimRole::program);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].process, process);
    end_process(process);
    EXPECT_EQ(tpcs_seen(), 0U);
  }
}

TEST_F(ClaimFiles, of_another_folder_are_not_theirs) {
  const pid_t process = program();
  const std::string other = test::fresh_folder("claim_files_beside") / "libcuda.so.1";
  ASSERT_TRUE(write_file(other, "a library\n"));
  EXPECT_EQ(CardClaim::open_all({other})->files().size(), 1U);
  EXPECT_EQ(CardClaim::open_all({file})->files().size(), 1U) << "it is the file itself";
  install();
  EXPECT_EQ(CardClaim::open_all({file})->files().size(), 2U);
  EXPECT_EQ(CardClaim::open_all({other})->files().size(), 1U);
  end_process(process);
}

// Each of two programs has claims on another file: those of later ones are on all of them.
TEST_F(ClaimFiles, are_all_those_that_any_program_has) {
  const pid_t first = program();
  install();
  const pid_t second = program();
  install();
  const CardClaim claim = CardClaim::open_all({file}).value();
  EXPECT_EQ(claim.files().size(), 3U);
  ASSERT_TRUE(claim.hold("GPU-1", PartOwner::sharing, {{0x40, 0}, 0}));
  end_process(first);
  end_process(second);
}

TEST_F(ClaimFiles, that_cannot_be_opened_any_more_are_refused_by_the_name_of_the_process) {
  if (::geteuid() != 0) DEMARC_NOT_RUN("only root can be another user");
  std::filesystem::permissions(folder, std::filesystem::perms::all);
  const pid_t process = staying_process([&] {
    become_another_user();
    static CardClaim own = CardClaim::open({file}).value();
    EXPECT_TRUE(own.keep("GPU-1", ClaimRole::program));
    for (const int number : own.files()) ::close(number);
  });
  install();
  EXPECT_EQ(CardClaim::open_all({file})->files().size(), 2U) << "root opens it by the mapping";
  EXPECT_TRUE(passes_in_a_process([&] {
    become_another_user();
    const auto refused = CardClaim::open_all({file});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_EQ(refused.error().message.substr(0, refused.error().message.find(" (")),
              fmt::format("'{}' was installed anew while process {}", file, process));
  }));
  end_process(process);
}

// A process of the same user that still has the descriptor.
TEST_F(ClaimFiles, are_opened_by_the_descriptors_of_ones_own_processes) {
  if (::geteuid() != 0) DEMARC_NOT_RUN("only root can be another user");
  std::filesystem::permissions(folder, std::filesystem::perms::all);
  const pid_t process = staying_process([&] {
    become_another_user();
    static CardClaim own = CardClaim::open({file}).value();
    EXPECT_TRUE(own.keep("GPU-1", ClaimRole::program));
  });
  install();
  EXPECT_TRUE(passes_in_a_process([&] {
    become_another_user();
    EXPECT_EQ(CardClaim::open_all({file})->files().size(), 2U);
  }));
  end_process(process);
}

TEST_F(ClaimFiles, that_are_new_are_claimed_by_who_follows) {
  CardClaim claim = CardClaim::open({file}).value();
  EXPECT_FALSE(claim.on_new_files().value());
  std::filesystem::remove(file);
  EXPECT_FALSE(claim.on_new_files().value()) << "there is none yet";
  install();
  auto next = claim.on_new_files().value();
  ASSERT_TRUE(next);
  ASSERT_TRUE(next->hold("GPU-1", PartOwner::program, {{0x8, 0}, 0}));
  claim.add(*std::move(next));
  EXPECT_EQ(claim.files().size(), 2U);
  EXPECT_FALSE(claim.on_new_files().value());
  EXPECT_EQ(tpcs_seen(), 0x8U);
}

TEST_F(ClaimFiles, are_one_for_each_installation_that_was_followed) {
  const std::string other = folder / "libcuda.so.999";
  std::filesystem::create_symlink(file, other);
  CardClaim claim = CardClaim::open({file}).value();
  for (std::size_t installed = 2; installed < 5; ++installed) {
    install();
    auto next = claim.on_new_files().value();
    ASSERT_TRUE(next);
    EXPECT_EQ(next->files().size(), 1U) << "although " << installed - 1 << " had this name";
    claim.add(*std::move(next));
    EXPECT_EQ(claim.files().size(), installed);
    EXPECT_TRUE(claim.turn(0)) << "no file is its own rival";
  }
  CardClaim by_two_names = CardClaim::open({file}).value();
  by_two_names.add(CardClaim::open({other}).value());
  install();
  EXPECT_EQ(by_two_names.on_new_files().value()->files().size(), 1U);
}

TEST_F(ClaimFiles, that_are_new_and_cannot_be_opened_are_refused_by_name) {
  CardClaim claim = CardClaim::open({file}).value();
  std::filesystem::remove(file);
  std::filesystem::create_symlink(file, file);
  const auto refused = claim.on_new_files();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr(file + "': Too many levels of symbolic links"));
}

// Between a look at all processes and the opening of a file its process may end.
TEST_F(ClaimFiles, of_a_process_that_has_ended_are_looked_for_again) {
  const pid_t process = program();
  install();
  auto pages = kept_pages();
  std::erase_if(pages, [&](const KeptPage& page) { return page.process != process; });
  ASSERT_EQ(pages.size(), 1U);
  pages.push_back(pages.front());
  EXPECT_EQ((*reopen(pages))->size(), 1U) << "one file, although it is kept twice";
  end_process(process);
  const auto files = reopen(pages);
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_FALSE(*files) << "a child of it may have the file";
}

// What any user can do who can read the file.
class ForeignLocks : public ClaimFiles {
 protected:
  [[nodiscard]] pid_t locker(std::int64_t first, std::int64_t bytes) const {
    return staying_process([&] {
      static const OwnedFile own(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
      struct flock range {};
      range.l_type = F_RDLCK;
      range.l_start = first;
      range.l_len = bytes;
      EXPECT_EQ(::fcntl(own.get(), F_OFD_SETLK, &range), 0);
    });
  }
  static constexpr std::int64_t page = 0x54726ef000;  // "GPU-1"
};

TEST_F(ForeignLocks, are_refused_by_the_name_of_their_process_and_its_user) {
  const CardClaim claim = CardClaim::open_all({file}).value();
  const auto names = [&] { return claim.names("GPU-1", ClaimRole::server); };
  const std::pair<std::int64_t, std::int64_t> ranges[] = {
      {page, 1}, {page + 1, 1}, {page - 1, 2}, {page + 1, 0}, {0, 0}};
  for (const auto& [first, bytes] : ranges) {
    const pid_t process = locker(first, bytes);
    EXPECT_THAT(names(),
                testing::AllOf(testing::StartsWith(fmt::format("process {} (", process)),
                               testing::EndsWith(fmt::format(
                                   ") of user {}, which has locked the file of the claims and is "
                                   "not a program of Demarc",
                                   ::geteuid()))))
        << first - page;
    end_process(process);
  }
  for (const auto& [first, bytes] : {std::pair{page - 1, 1}, std::pair{page + 2, 4094}}) {
    const pid_t process = locker(first, bytes);
    EXPECT_EQ(names(), "a process that cannot be seen from here") << first - page;
    end_process(process);
  }
}

TEST_F(ForeignLocks, are_named_for_the_role_whose_bytes_they_hold) {
  const CardClaim claim = CardClaim::open_all({file}).value();
  const auto roles = [&](std::int64_t first, std::int64_t bytes) {
    const pid_t process = locker(page + first, bytes);
    std::string found;
    for (const auto& [role, word] :
         {std::pair{ClaimRole::server, "server "}, std::pair{ClaimRole::tenant, "tenant "},
          std::pair{ClaimRole::program, "program "}}) {
      if (claim.names("GPU-1", role).find("not a program of Demarc") != std::string::npos) {
        found += word;
      }
    }
    end_process(process);
    return found;
  };
  EXPECT_EQ(roles(0, 2), "server ");
  EXPECT_EQ(roles(2, 1), "tenant ");
  EXPECT_EQ(roles(3, 253), "");
  EXPECT_EQ(roles(256, 1), "tenant ");
  EXPECT_EQ(roles(511, 1), "tenant ");
  EXPECT_EQ(roles(512, 1), "program ");
  EXPECT_EQ(roles(1023, 1), "program ");
  EXPECT_EQ(roles(1024, 3072), "");
}

// A server of another user is not seen, but programs of Demarc that hold other bytes are.
TEST_F(ForeignLocks, are_not_those_of_a_program_of_demarc_in_another_role) {
  const CardClaim hidden = CardClaim::open({file}).value();
  ASSERT_TRUE(hidden.hold_server("GPU-1", true));
  ASSERT_TRUE(hidden.hold_lent("GPU-1"));
  const pid_t of_its_own = program();
  const pid_t with_all_bytes = staying_process([&] {
    static CardClaim own = CardClaim::open({file}).value();
    EXPECT_TRUE(own.hold_server("GPU-1", false));
    EXPECT_TRUE(own.keep("GPU-1", ClaimRole::tenant));
  });
  const CardClaim claim = CardClaim::open_all({file}).value();
  EXPECT_EQ(claim.names("GPU-1", ClaimRole::server), "a process that cannot be seen from here");
  end_process(of_its_own);
  end_process(with_all_bytes);
}

TEST_F(ForeignLocks, are_not_named_where_a_program_of_demarc_has_the_claim) {
  const pid_t other = locker(page, 1);
  const pid_t process = program(ClaimRole::server);
  const CardClaim claim = CardClaim::open_all({file}).value();
  EXPECT_THAT(claim.names("GPU-1", ClaimRole::server),
              testing::StartsWith(fmt::format("process {} (", process)));
  EXPECT_THAT(claim.names("GPU-1", ClaimRole::server), testing::Not(HasSubstr("of user")));
  end_process(other);
  end_process(process);
}

TEST_F(ForeignLocks, of_the_whole_file_keep_all_from_their_turn_and_are_named) {
  const pid_t process = staying_process([&] {
    static const OwnedFile own(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(::flock(own.get(), LOCK_SH), 0);
  });
  const CardClaim claim = CardClaim::open_all({file}).value();
  EXPECT_THAT(claim.turn(0).error().message,
              HasSubstr(fmt::format("libcuda.so.1': process {} (", process)));
  EXPECT_THAT(claim.turn(0).error().message,
              HasSubstr(fmt::format(") of user {} has locked this file (flock), and the card "
                                    "cannot be claimed before it ends",
                                    ::geteuid())));
  EXPECT_EQ(claim.names("GPU-1", ClaimRole::server), "a process that cannot be seen from here");
  end_process(process);
}

}  // namespace
}  // namespace demarc::lease
