// Claims of a card: who sees them, and until when they are held.
#include "demarc/lease/card_claim.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "demarc/base/files.hpp"
#include "own_process.hpp"
#include "paths.hpp"
#include "refusal.hpp"
#include "staying_process.hpp"

namespace demarc::lease {
namespace {

using test::end_process;
using test::passes_in_a_process;
using test::staying_process;
using test::why;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// Where the claims of these cards lie in the file: programs of other versions look there, too.
constexpr off_t page_of_1 = 0x54726ef000;  // "GPU-1"
constexpr off_t page_of_2 = 0xe1296d7000;  // "GPU-2"

class CardClaims : public testing::Test {
 protected:
  [[nodiscard]] CardClaim claim() const { return CardClaim::open({file, other_file}).value(); }
  [[nodiscard]] ClaimedCard seen(const std::string& of = "GPU-1") const {
    return claim().others(of).value();
  }
  // Bytes of the file that any process has locked: where they begin, and how many.
  [[nodiscard]] std::vector<std::pair<off_t, off_t>> locked() const {
    const OwnedFile looking(::open(file.c_str(), O_RDWR | O_CLOEXEC));
    std::vector<std::pair<off_t, off_t>> found;
    for (off_t from = 0;;) {
      struct flock range {};
      range.l_type = F_WRLCK;
      range.l_start = from;
      EXPECT_EQ(::fcntl(looking.get(), F_OFD_GETLK, &range), 0);
      if (range.l_type == F_UNLCK) return found;
      found.emplace_back(range.l_start, range.l_len);
      from = range.l_start + range.l_len;
    }
  }
  // Byte of the page of "GPU-1" in the second file, as long as it is open.
  [[nodiscard]] OwnedFile locked_by_another(off_t byte) const {
    OwnedFile writer(::open(other_file.c_str(), O_RDWR | O_CLOEXEC));
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_start = page_of_1 + byte;
    range.l_len = 1;
    EXPECT_EQ(::fcntl(writer.get(), F_OFD_SETLK, &range), 0);
    return writer;
  }
  // Its second file is none that can be locked any more.
  static void spoil(const CardClaim& claim) {
    const OwnedFile path_only(::open("/", O_PATH | O_CLOEXEC));
    ASSERT_EQ(::dup2(path_only.get(), claim.files().at(1)), claim.files().at(1));
  }
  std::string made(const std::string& name) const {
    const std::string path = folder / name;
    EXPECT_TRUE(write_file(path, "a library\n"));
    return path;
  }
  std::filesystem::path folder = test::fresh_folder("claims");
  std::string file = made("libcuda.so.1");
  std::string other_file = made("libnvidia-ml.so.1");
};

TEST_F(CardClaims, lie_where_all_programs_look_for_them) {
  const CardClaim own = claim();
  const ClaimedPart ends{{0x1, 0x8000000000000000}, 0x8000000000000001};
  ASSERT_TRUE(own.hold("GPU-1", PartOwner::sharing, ends));
  ASSERT_THAT(locked(), ElementsAre(Pair(page_of_1 + 768, 1), Pair(page_of_1 + 768 + 127, 2),
                                    Pair(page_of_1 + 768 + 191, 1)));
  ASSERT_TRUE(own.hold("GPU-1", PartOwner::sharing, {}));
  ASSERT_TRUE(own.hold("GPU-1", PartOwner::program, ends));
  ASSERT_THAT(locked(), ElementsAre(Pair(page_of_1 + 512, 1), Pair(page_of_1 + 512 + 127, 2),
                                    Pair(page_of_1 + 512 + 191, 1)));
  ASSERT_TRUE(own.hold("GPU-1", PartOwner::program, {}));
  ASSERT_TRUE(own.hold("GPU-1", PartOwner::tenants, ends));
  ASSERT_THAT(locked(), ElementsAre(Pair(page_of_1 + 256, 1), Pair(page_of_1 + 256 + 127, 2),
                                    Pair(page_of_1 + 256 + 191, 1)));
  ASSERT_TRUE(own.hold("GPU-1", PartOwner::tenants, {}));
  ASSERT_TRUE(own.hold_server("GPU-1", false));
  ASSERT_THAT(locked(), ElementsAre(Pair(page_of_1, 1)));
  ASSERT_TRUE(own.hold_server("GPU-1", true));
  ASSERT_THAT(locked(), ElementsAre(Pair(page_of_1, 2)));
  ASSERT_TRUE(own.hold_server("GPU-1", false));
  ASSERT_TRUE(own.hold_lent("GPU-1"));
  ASSERT_THAT(locked(), ElementsAre(Pair(page_of_1, 1), Pair(page_of_1 + 2, 1)));
  const CardClaim other = claim();
  ASSERT_TRUE(other.hold_server("GPU-2", false));
  ASSERT_THAT(locked(), testing::Contains(Pair(page_of_2, 1)));
  EXPECT_EQ(claim_address("GPU-1", ClaimRole::server), (off_t{1} << 40) + page_of_1);
  EXPECT_EQ(claim_address("GPU-1", ClaimRole::tenant), (off_t{2} << 40) + page_of_1);
  EXPECT_EQ(claim_address("GPU-2", ClaimRole::program), (off_t{3} << 40) + page_of_2);
}

TEST_F(CardClaims, are_seen_by_others_of_that_card_and_not_by_their_owner) {
  const CardClaim own = claim();
  const ClaimedPart part{{0x5, 0x8000000000000000}, 0x8000000000000002};
  ASSERT_TRUE(own.hold("GPU-1", PartOwner::sharing, part));
  EXPECT_EQ(seen().of(PartOwner::sharing), part);
  EXPECT_EQ(seen().of(PartOwner::tenants), ClaimedPart{});
  EXPECT_EQ(seen().of(PartOwner::program), ClaimedPart{});
  EXPECT_EQ(seen("GPU-2").of(PartOwner::sharing), ClaimedPart{});
  EXPECT_EQ(own.others("GPU-1").value().of(PartOwner::sharing), ClaimedPart{});
  const ClaimedPart less{{0x4, 0}, 0};
  ASSERT_TRUE(own.hold("GPU-1", PartOwner::sharing, less));
  EXPECT_EQ(seen().of(PartOwner::sharing), less) << "in the place of what was held";
  EXPECT_FALSE(seen().server);
  ASSERT_TRUE(own.hold_server("GPU-1", true));
  EXPECT_TRUE(seen().server && seen().serving && !seen().lent);
  ASSERT_TRUE(own.hold_server("GPU-1", false));
  EXPECT_TRUE(seen().server && !seen().serving);
  ASSERT_TRUE(own.hold_lent("GPU-1"));
  EXPECT_TRUE(seen().lent && !seen("GPU-2").lent && !seen("GPU-2").server);
}

TEST_F(CardClaims, of_one_kind_are_seen_as_no_others) {
  const CardClaim own = claim();
  const ClaimedPart all{{~std::uint64_t{0}, ~std::uint64_t{0}}, ~std::uint64_t{0}};
  for (const PartOwner owner : {PartOwner::sharing, PartOwner::program, PartOwner::tenants}) {
    ASSERT_TRUE(own.hold("GPU-1", owner, all));
    const ClaimedCard card = seen();
    for (const PartOwner one : {PartOwner::sharing, PartOwner::program, PartOwner::tenants}) {
      EXPECT_EQ(card.of(one), one == owner ? all : ClaimedPart{});
    }
    EXPECT_FALSE(card.server || card.serving || card.lent);
    ASSERT_TRUE(own.hold("GPU-1", owner, {}));
  }
  for (std::uint32_t bit = 0; bit < 64; bit += 7) {
    const std::uint64_t word = std::uint64_t{1} << bit;
    for (const ClaimedPart& part :
         {ClaimedPart{{word, 0}, 0}, ClaimedPart{{0, word}, 0}, ClaimedPart{{0, 0}, word}}) {
      ASSERT_TRUE(own.hold("GPU-1", PartOwner::program, part));
      ASSERT_EQ(seen().of(PartOwner::program), part);
    }
  }
  ASSERT_TRUE(own.hold("GPU-1", PartOwner::program, {}));
  ASSERT_TRUE(own.hold_lent("GPU-1"));
  EXPECT_TRUE(!seen().server && !seen().serving);
  const CardClaim of_server = claim();
  ASSERT_TRUE(of_server.hold_server("GPU-2", false));
  EXPECT_TRUE(seen("GPU-2").server && !seen("GPU-2").serving && !seen("GPU-2").lent);
}

TEST_F(CardClaims, say_one_thing_per_byte) {
  for (off_t byte = 0; byte < 4; ++byte) {
    const OwnedFile writer = locked_by_another(byte);
    const ClaimedCard card = seen();
    EXPECT_EQ(card.server, byte == 0);
    EXPECT_EQ(card.serving, byte == 1);
    EXPECT_EQ(card.lent, byte == 2);
  }
  for (const off_t part : {256, 512, 768}) {
    const OwnedFile writer = locked_by_another(part + 192);
    for (const PartOwner owner : {PartOwner::sharing, PartOwner::program, PartOwner::tenants}) {
      EXPECT_EQ(seen().of(owner), ClaimedPart{}) << "a byte behind the last domain";
    }
  }
}

TEST_F(CardClaims, are_refused_where_their_bytes_cannot_be_locked) {
  const CardClaim own = claim();
  const std::string cannot =
      "libnvidia-ml.so.1': Resource temporarily unavailable: the card cannot be claimed";
  for (const off_t byte : {0, 1}) {
    const OwnedFile writer = locked_by_another(byte);
    const auto refused = own.hold_server("GPU-1", true);
    ASSERT_FALSE(refused) << byte;
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(refused.error().message, HasSubstr(cannot));
    EXPECT_EQ(own.hold_server("GPU-1", false).has_value(), byte == 1);
    EXPECT_TRUE(own.hold_server("GPU-2", true)) << "of another card";
  }
  {
    const OwnedFile writer = locked_by_another(2);
    EXPECT_THAT(why(own.hold_lent("GPU-1")), HasSubstr(cannot));
  }
  const OwnedFile writer = locked_by_another(512 + 128 + 63);
  EXPECT_THAT(why(own.hold("GPU-1", PartOwner::program, {{0, 0}, 0x8000000000000000})),
              HasSubstr(cannot));
  EXPECT_TRUE(own.hold("GPU-1", PartOwner::program, {{1, 1}, 0x7fffffffffffffff}));
}

TEST_F(CardClaims, of_files_that_are_none_any_more_are_refused) {
  const CardClaim own = claim();
  spoil(own);
  const std::string cannot = "libnvidia-ml.so.1': Bad file descriptor: the card cannot be claimed";
  EXPECT_THAT(why(own.others("GPU-1")), HasSubstr(cannot));
  EXPECT_THAT(why(own.turn(0)), HasSubstr(cannot));
  EXPECT_THAT(why(own.hold("GPU-1", PartOwner::tenants, {})), HasSubstr(cannot));
  EXPECT_THAT(why(own.hold_server("GPU-1", false)), HasSubstr(cannot));
  EXPECT_THAT(why(own.hold_lent("GPU-1")), HasSubstr(cannot));
  CardClaim kept = claim();
  spoil(kept);
  EXPECT_THAT(why(kept.keep("GPU-1", ClaimRole::server)),
              HasSubstr("a file cannot be kept open: Bad file descriptor"));
}

TEST_F(CardClaims, go_with_the_object_that_keeps_them) {
  for (const bool keeps : {false, true}) {
    auto own = std::make_unique<CardClaim>(claim());
    ASSERT_TRUE(own->hold_lent("GPU-1"));
    ASSERT_TRUE(!keeps || own->keep("GPU-1", ClaimRole::server));
    EXPECT_TRUE(seen().lent);
    own.reset();
    EXPECT_FALSE(seen().lent) << keeps;
  }
}

TEST_F(CardClaims, have_files_that_no_other_program_inherits_and_that_none_waits_for) {
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const CardClaim own = claim();
  ASSERT_EQ(own.files().size(), 2U);
  for (const int one : own.files()) {
    EXPECT_NE(::fcntl(one, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_EQ(::fcntl(one, F_GETFL) & O_ACCMODE, O_RDONLY);
  }
  EXPECT_TRUE(passes_in_a_process([&] { EXPECT_TRUE(CardClaim::open({pipe})); }));
}

TEST_F(CardClaims, are_taken_with_descriptor_0_as_with_any_other) {
  EXPECT_TRUE(passes_in_a_process([&] {
    ::close(0);
    const CardClaim own = claim();
    ASSERT_EQ(own.files().at(0), 0);
    EXPECT_TRUE(own.hold_lent("GPU-1"));
    EXPECT_TRUE(seen().lent);
  }));
}

TEST_F(CardClaims, are_seen_by_any_file_of_theirs) {
  const CardClaim own = claim();
  ASSERT_TRUE(own.hold_lent("GPU-1"));
  for (const std::string& one : {file, other_file}) {
    EXPECT_TRUE(CardClaim::open({one})->others("GPU-1")->lent) << one;
  }
  for (const std::string& one : {file, other_file}) {
    const CardClaim of_one = CardClaim::open({one}).value();
    ASSERT_TRUE(of_one.hold_server("GPU-1", false));
    EXPECT_TRUE(seen().server) << one;
  }
}

TEST_F(CardClaims, stay_with_a_process_that_closes_all_descriptors_and_go_with_it) {
  for (const bool keeps : {true, false}) {
    const pid_t process = staying_process([&] {
      static CardClaim own = claim();
      EXPECT_TRUE(own.hold_lent("GPU-1"));
      EXPECT_TRUE(!keeps || own.keep("GPU-1", ClaimRole::tenant));
      for (const int one : own.files()) ::close(one);
    });
    EXPECT_EQ(seen().lent, keeps);
    end_process(process);
    EXPECT_FALSE(seen().lent);
  }
}

TEST_F(CardClaims, stay_with_any_process_that_has_their_files) {
  auto own = std::make_unique<CardClaim>(claim());
  ASSERT_TRUE(own->hold_lent("GPU-1"));
  const pid_t process = staying_process([] {});
  own.reset();
  EXPECT_TRUE(seen().lent);
  end_process(process);
  EXPECT_FALSE(seen().lent);
}

TEST_F(CardClaims, are_made_of_files_that_are_open) {
  std::vector<OwnedFile> files;
  for (const std::string& name : {file, other_file}) {
    files.emplace_back(::open(name.c_str(), O_RDWR | O_CLOEXEC));
  }
  const CardClaim own = CardClaim::of(std::move(files));
  EXPECT_EQ(own.files().size(), 2U);
  ASSERT_TRUE(own.hold_lent("GPU-1"));
  EXPECT_TRUE(seen().lent);
}

TEST_F(CardClaims, are_kept_by_processes_that_are_found_by_their_role) {
  const pid_t process = staying_process([&] {
    // What /proc/PID/cmdline says from now on; the path of a test program is longer.
    constexpr char words[] = "/x/py\0y/t.py\0z";
    ASSERT_GE(std::strlen(program_invocation_name), sizeof words);
    std::memcpy(program_invocation_name, words, sizeof words);
    static CardClaim own = claim();
    EXPECT_TRUE(own.keep("GPU-1", ClaimRole::program));
  });
  CardClaim own = claim();
  ASSERT_TRUE(own.keep("GPU-1", ClaimRole::program));
  const auto found = own.claimers("GPU-1", ClaimRole::program);
  ASSERT_EQ(found.size(), 1U) << "this process is not among them";
  EXPECT_EQ(found[0].process, process);
  EXPECT_EQ(found[0].name, fmt::format("{} (py t.py)", process));
  EXPECT_EQ(names_of(found), "process " + found[0].name);
  EXPECT_TRUE(own.claimers("GPU-1", ClaimRole::tenant).empty());
  EXPECT_TRUE(own.claimers("GPU-2", ClaimRole::program).empty());
  const auto elsewhere = CardClaim::open({made("another")}).value();
  EXPECT_TRUE(elsewhere.claimers("GPU-1", ClaimRole::program).empty()) << "by other files";
  end_process(process);
  EXPECT_TRUE(own.claimers("GPU-1", ClaimRole::program).empty());
  EXPECT_EQ(names_of({}), "a process that cannot be seen from here");
  EXPECT_EQ(names_of({{1, "1 (a)"}, {2, "2 (b)"}}), "processes 1 (a), 2 (b)");
}

// The server's lock and its claims all lie at one address of their files.
TEST_F(CardClaims, are_found_by_each_file_that_a_process_keeps) {
  const std::string third_file = made("third");
  const pid_t process = staying_process([&] {
    static CardClaim as_tenant = CardClaim::open({third_file}).value();
    EXPECT_TRUE(as_tenant.keep("GPU-1", ClaimRole::tenant));
    static CardClaim own = claim();
    EXPECT_TRUE(own.keep("GPU-1", ClaimRole::program));
  });
  for (const std::string& one : {file, other_file}) {
    const CardClaim of_one = CardClaim::open({one}).value();
    const auto found = of_one.claimers("GPU-1", ClaimRole::program);
    ASSERT_EQ(found.size(), 1U) << one;
    EXPECT_EQ(found[0].process, process);
  }
  const CardClaim of_third = CardClaim::open({third_file}).value();
  EXPECT_TRUE(of_third.claimers("GPU-1", ClaimRole::program).empty());
  EXPECT_EQ(of_third.claimers("GPU-1", ClaimRole::tenant).size(), 1U);
  const CardClaim one_of_two = CardClaim::open({third_file, file}).value();
  EXPECT_EQ(one_of_two.claimers("GPU-1", ClaimRole::tenant).size(), 1U);
  end_process(process);
}

TEST_F(CardClaims, wait_for_their_turn_as_long_as_they_are_told) {
  const CardClaim first = claim();
  const auto turn = first.turn();
  ASSERT_TRUE(turn);
  EXPECT_TRUE(passes_in_a_process([&] {
    const CardClaim second = claim();
    for (const std::uint32_t patience_ms : {0U, 21U}) {
      const auto begin = std::chrono::steady_clock::now();
      const auto refused = second.turn(patience_ms);
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
      EXPECT_THAT(refused.error().message, HasSubstr("has locked this file (flock)"));
      EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(patience_ms));
    }
  }));
}

TEST_F(CardClaims, change_in_turn) {
  const CardClaim first = claim();
  const CardClaim second = claim();
  {
    const auto turn = first.turn();
    ASSERT_TRUE(turn);
    ASSERT_FALSE(second.turn(0));
  }
  ASSERT_TRUE(second.turn(0));
  EXPECT_TRUE(first.turn(0)) << "a turn ends";
  const pid_t process = staying_process([&] {
    static CardClaim own = claim();
    static auto turn = own.turn();
  });
  EXPECT_FALSE(first.turn(0));
  end_process(process);
  EXPECT_TRUE(first.turn(0)) << "with the process, too";
}

TEST_F(CardClaims, who_gets_no_turn_has_no_half_of_it) {
  const CardClaim all = claim();
  const CardClaim half = CardClaim::open({other_file}).value();
  const auto turn = half.turn(0);
  ASSERT_TRUE(turn);
  EXPECT_FALSE(all.turn(0));
  EXPECT_TRUE(CardClaim::open({file})->turn(0));
}

TEST_F(CardClaims, need_their_files) {
  const auto none = CardClaim::open({file, folder / "none"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(none.error().message, HasSubstr("none': No such file or directory: the card cannot"));
}

}  // namespace
}  // namespace demarc::lease
