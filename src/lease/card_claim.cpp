// Takes, compares and keeps the claims of a card, and finds the processes that have them.
#include "demarc/lease/card_claim.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "demarc/base/hash.hpp"
#include "demarc/base/numbers.hpp"
#include "demarc/base/text.hpp"

namespace demarc::lease {
namespace {

constexpr std::size_t page_bytes = 4096;
// Beyond the end of every library, and below the longest file of ext4 in its oldest form (4 TiB).
constexpr off_t first_address = 0x100'0000'0000;

// Bytes of a card's page.
constexpr std::uint32_t server_byte = 0;
constexpr std::uint32_t serving_byte = 1;
constexpr std::uint32_t lent_byte = 2;
constexpr std::uint32_t parts_at = 256;
constexpr std::uint32_t part_bytes = 256;  // of each owner: its TPCs, then its domains
constexpr std::uint32_t most_tpcs = 128;
constexpr std::uint32_t most_domains = 64;
static_assert(parts_at + 3 * part_bytes <= page_bytes && most_tpcs + most_domains <= part_bytes);

constexpr std::chrono::milliseconds look_pause(10);  // at a lock that another has

std::uint32_t place_of(PartOwner owner) {
  return parts_at + part_bytes * static_cast<std::uint32_t>(owner);
}

// The word of a ClaimedPart that has the bit.
template <class Part>
auto& word_of(Part& part, std::uint32_t bit) {
  return bit < most_tpcs ? part.tpcs.at(bit / 64) : part.domains;
}

off_t page_of(const std::string& card) {
  constexpr std::uint64_t pages = first_address / page_bytes;
  return static_cast<off_t>(hash_of(card) % pages * page_bytes);
}

struct flock range_of(const std::string& card, std::uint32_t first, std::uint32_t count,
                      short type) {
  return {type, SEEK_SET, page_of(card) + first, count, 0};
}

tl::unexpected<Error> no_claims(const std::string& file) {
  return missing_capability(
      "'{}': {}: the card cannot be claimed, and other programs of Demarc would not see that it is "
      "in use",
      file, std::strerror(errno));
}

std::string first_words(const std::filesystem::path& process) {
  std::ifstream file(process / "cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; words.size() < 2 && std::getline(file, word, '\0');) {
    words.push_back(std::filesystem::path(word).filename());
  }
  return joined(words, " ");
}

// `address` and `files`: as they stand in a line "START-END ---s ADDRESS DEVICE FILE PATH", with
// the blanks around them.
bool maps_one_of(const std::vector<std::string>& files, const std::string& address,
                 const std::filesystem::path& process) {
  std::ifstream maps(process / "maps");
  for (std::string line; std::getline(maps, line);) {
    const auto has = [&](const std::string& part) { return line.find(part) != std::string::npos; };
    if (has(address) && std::any_of(files.begin(), files.end(), has)) return true;
  }
  return false;
}

}  // namespace

off_t claim_address(const std::string& card, ClaimRole role) {
  return first_address * (1 + static_cast<off_t>(role)) + page_of(card);
}

off_t tenant_address(const std::string& card, const std::string& tenant) {
  return page_of(card + " " + tenant);
}

Result<void> KeptFile::keep(off_t address) {
  void* page = ::mmap(nullptr, page_bytes, PROT_NONE, MAP_SHARED, file_.get(), address);
  if (page == MAP_FAILED) {
    return missing_capability("a file cannot be kept open: {}", std::strerror(errno));
  }
  pages_.push_back(page);
  return {};
}

KeptFile::~KeptFile() {
  for (void* page : pages_) ::munmap(page, page_bytes);
}

KeptFile::KeptFile(KeptFile&& other) noexcept
    : file_(std::move(other.file_)), pages_(std::exchange(other.pages_, {})) {}

CardClaim::Turn::~Turn() {
  for (const File& one : files_) ::flock(one.kept.get(), LOCK_UN);
}

Result<CardClaim> CardClaim::open(const std::vector<std::string>& files) {
  CardClaim claim;
  for (const std::string& name : files) {
    OwnedFile file(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0) return no_claims(name);
    claim.files_.push_back({name, KeptFile(std::move(file))});
  }
  return claim;
}

Result<CardClaim::Turn> CardClaim::turn(std::uint32_t patience_ms) const {
  using Clock = std::chrono::steady_clock;
  Turn turn(files_);  // gives back what it has where it does not get all
  for (const File& one : files_) {
    const auto until = Clock::now() + std::chrono::milliseconds(patience_ms);
    while (::flock(one.kept.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return no_claims(one.name);
      if (Clock::now() >= until) {
        return missing_capability(
            "'{}': another program has this file locked (flock), and the card cannot be claimed",
            one.name);
      }
      std::this_thread::sleep_for(look_pause);
    }
  }
  return turn;
}

Result<void> CardClaim::lock(const std::string& card, std::uint32_t first, std::uint32_t count,
                             bool held) const {
  for (const File& one : files_) {
    struct flock range = range_of(card, first, count, held ? F_RDLCK : F_UNLCK);
    if (::fcntl(one.kept.get(), F_OFD_SETLK, &range) != 0) return no_claims(one.name);
  }
  return {};
}

Result<bool> CardClaim::others_hold(const std::string& card, std::uint32_t first,
                                    std::uint32_t count) const {
  for (const File& one : files_) {
    // Locks to read are enough to be seen: who asks, asks as if it wanted to write.
    struct flock range = range_of(card, first, count, F_WRLCK);
    if (::fcntl(one.kept.get(), F_OFD_GETLK, &range) != 0) return no_claims(one.name);
    if (range.l_type != F_UNLCK) return true;
  }
  return false;
}

Result<ClaimedCard> CardClaim::others(const std::string& card) const {
  ClaimedCard claimed;
  DEMARC_TRY(claimed.server, others_hold(card, server_byte, 1));
  DEMARC_TRY(claimed.serving, others_hold(card, serving_byte, 1));
  DEMARC_TRY(claimed.lent, others_hold(card, lent_byte, 1));
  for (const PartOwner owner : {PartOwner::tenants, PartOwner::program, PartOwner::sharing}) {
    const std::uint32_t at = place_of(owner);
    ClaimedPart& part = claimed.parts[static_cast<std::size_t>(owner)];
    DEMARC_TRY(const bool some, others_hold(card, at, part_bytes));
    for (std::uint32_t bit = 0; some && bit < most_tpcs + most_domains; ++bit) {
      DEMARC_TRY(const bool held, others_hold(card, at + bit, 1));
      if (held) word_of(part, bit) |= std::uint64_t{1} << (bit % 64);
    }
  }
  return claimed;
}

Result<void> CardClaim::hold(const std::string& card, PartOwner owner,
                             const ClaimedPart& part) const {
  const std::uint32_t at = place_of(owner);
  for (std::uint32_t bit = 0; bit < most_tpcs + most_domains; ++bit) {
    const std::uint64_t word = word_of(part, bit);
    DEMARC_CHECK(lock(card, at + bit, 1, ((word >> (bit % 64)) & 1U) != 0));
  }
  return {};
}

Result<void> CardClaim::hold_server(const std::string& card, bool serving) const {
  DEMARC_CHECK(lock(card, server_byte, 1, true));
  return lock(card, serving_byte, 1, serving);
}

Result<void> CardClaim::hold_lent(const std::string& card) const {
  return lock(card, lent_byte, 1, true);
}

Result<void> CardClaim::keep(const std::string& card, ClaimRole role) {
  for (File& one : files_) DEMARC_CHECK(one.kept.keep(claim_address(card, role)));
  return {};
}

std::vector<int> CardClaim::files() const {
  std::vector<int> numbers;
  for (const File& one : files_) numbers.push_back(one.kept.get());
  return numbers;
}

std::vector<Claimer> CardClaim::keepers(off_t place) const {
  const std::string address = fmt::format(" ---s {:08x} ", place);
  std::vector<std::string> files;
  for (const File& one : files_) {
    struct stat status {};
    if (::fstat(one.kept.get(), &status) == 0) files.push_back(fmt::format(" {} ", status.st_ino));
  }
  std::vector<Claimer> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const auto number = parse_u64(entry.path().filename().string(), "a process");
    if (!number || static_cast<pid_t>(*number) == ::getpid()) continue;
    if (!maps_one_of(files, address, entry.path())) continue;
    found.push_back(
        {static_cast<pid_t>(*number), fmt::format("{} ({})", *number, first_words(entry.path()))});
  }
  return found;
}

std::string names_of(const std::vector<Claimer>& claimers) {
  if (claimers.empty()) return "a process that cannot be seen from here";
  std::vector<std::string> names;
  names.reserve(claimers.size());
  for (const Claimer& claimer : claimers) names.push_back(claimer.name);
  return fmt::format("process{} {}", names.size() == 1 ? "" : "es", joined(names, ", "));
}

}  // namespace demarc::lease
