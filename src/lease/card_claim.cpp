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
#include <thread>
#include <utility>

#include "claim_holders.hpp"
#include "demarc/base/hash.hpp"
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
constexpr std::uint32_t part_bytes = 256;  // per owner: its TPCs, then its domains
constexpr std::uint32_t max_tpcs = 128;
constexpr std::uint32_t max_domains = 64;
static_assert(parts_at + 3 * part_bytes <= page_bytes && max_tpcs + max_domains <= part_bytes);

constexpr std::chrono::milliseconds look_pause(10);  // at a lock that another has

std::uint32_t place_of(PartOwner owner) {
  return parts_at + part_bytes * static_cast<std::uint32_t>(owner);
}

// The word of a ClaimedPart that has the bit.
template <class Part>
auto& word_of(Part& part, std::uint32_t bit) {
  return bit < max_tpcs ? part.tpcs.at(bit / 64) : part.domains;
}

off_t page_of(const std::string& card) {
  constexpr std::uint64_t pages = first_address / page_bytes;
  return static_cast<off_t>(hash_of(card) % pages * page_bytes);
}

struct flock range_of(const std::string& card, std::uint32_t first, std::uint32_t count,
                      short type) {
  return {type, SEEK_SET, page_of(card) + first, count, 0};
}

LockedRange bytes_of(const std::string& card, std::uint32_t first, std::uint32_t count) {
  const off_t begin = page_of(card) + first;
  return {false, begin, begin + count - 1};
}

// What processes in this role lock. Parts of programs that share lie behind those of the others.
std::vector<LockedRange> ranges_of(const std::string& card, ClaimRole role) {
  switch (role) {
    case ClaimRole::server:
      return {bytes_of(card, server_byte, 2)};
    case ClaimRole::tenant:
      return {bytes_of(card, lent_byte, 1),
              bytes_of(card, place_of(PartOwner::tenants), part_bytes)};
    case ClaimRole::program:
      break;
  }
  return {bytes_of(card, place_of(PartOwner::program), 2 * part_bytes)};
}

template <class Range, class Item>
bool contains(const Range& all, const Item& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

tl::unexpected<Error> no_claims(const std::string& file) {
  return missing_capability(
      "'{}': {}: the card cannot be claimed, and other programs of Demarc would not see that it is "
      "in use",
      file, std::strerror(errno));
}

ino_t number_of(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 ? status.st_ino : 0;
}

// Without " (deleted)" where another file has taken its place.
std::filesystem::path folder_of(int file) {
  std::error_code ignored;
  return std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", file), ignored)
      .parent_path();
}

OwnedFile open_to_claim(const std::string& name) {
  return OwnedFile(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

std::string name_with_user(pid_t process) {
  struct stat status {};
  static_cast<void>(::stat(fmt::format("/proc/{}", process).c_str(), &status));
  return fmt::format("process {} of user {}", name_of_process(process), status.st_uid);
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
    OwnedFile file = open_to_claim(name);
    if (file.get() < 0) return no_claims(name);
    claim.files_.push_back({name, KeptFile(std::move(file))});
  }
  return claim;
}

CardClaim CardClaim::of(std::vector<OwnedFile> files) {
  CardClaim claim;
  for (OwnedFile& file : files) {
    std::string name = fmt::format("/proc/self/fd/{}", file.get());
    claim.files_.push_back({std::move(name), KeptFile(std::move(file))});
  }
  return claim;
}

Result<CardClaim> CardClaim::open_all(const std::vector<std::string>& files) {
  DEMARC_TRY(CardClaim claim, open(files));
  std::vector<std::filesystem::path> folders;
  for (const File& one : claim.files_) folders.push_back(folder_of(one.kept.get()));
  const std::vector<ino_t> known = claim.numbers();
  constexpr int max_looks = 16;
  for (int look = 0; look < max_looks; ++look) {
    std::vector<KeptPage> pages = kept_pages();
    std::erase_if(pages, [&](const KeptPage& page) {
      return page.address < first_address || contains(known, page.file) ||
             !contains(folders, std::filesystem::path(page.path).parent_path());
    });
    DEMARC_TRY(auto before, reopen(pages));
    if (!before) continue;
    for (ReopenedFile& one : *before) {
      claim.files_.push_back({std::move(one.path), KeptFile(std::move(one.file))});
    }
    return claim;
  }
  return missing_capability(
      "processes with claims on an earlier driver begin and end all the time, so what they have is "
      "not known: try again");
}

Result<CardClaim::Turn> CardClaim::turn(std::uint32_t patience_ms) const {
  using Clock = std::chrono::steady_clock;
  Turn turn(files_);  // gives back what it has where it does not get all
  for (const File& one : files_) {
    const auto until = Clock::now() + std::chrono::milliseconds(patience_ms);
    while (::flock(one.kept.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return no_claims(one.name);
      if (Clock::now() >= until) {
        const auto other = locker_of({number_of(one.kept.get())}, {{true, 0, 0}});
        return missing_capability(
            "'{}': {} has locked this file (flock), and the card cannot be claimed before it ends",
            one.name, other ? name_with_user(*other) : "another program");
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
    for (std::uint32_t bit = 0; some && bit < max_tpcs + max_domains; ++bit) {
      DEMARC_TRY(const bool held, others_hold(card, at + bit, 1));
      if (held) word_of(part, bit) |= std::uint64_t{1} << (bit % 64);
    }
  }
  return claimed;
}

Result<void> CardClaim::hold(const std::string& card, PartOwner owner,
                             const ClaimedPart& part) const {
  const std::uint32_t at = place_of(owner);
  for (std::uint32_t bit = 0; bit < max_tpcs + max_domains; ++bit) {
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

Result<std::optional<CardClaim>> CardClaim::on_new_files() const {
  std::vector<ino_t> known = numbers();
  CardClaim claim;
  // Several files may have had one name, and several names may be those of one file.
  for (const File& one : files_) {
    OwnedFile file = open_to_claim(one.name);
    if (file.get() < 0 && errno == ENOENT) continue;
    if (file.get() < 0) return no_claims(one.name);
    const ino_t number = number_of(file.get());
    if (contains(known, number)) continue;
    known.push_back(number);
    claim.files_.push_back({one.name, KeptFile(std::move(file))});
  }
  if (claim.files_.empty()) return std::nullopt;
  return claim;
}

void CardClaim::add(CardClaim other) {
  for (File& one : other.files_) files_.push_back(std::move(one));
}

std::vector<ino_t> CardClaim::numbers() const {
  std::vector<ino_t> found;
  for (const File& one : files_) found.push_back(number_of(one.kept.get()));
  return found;
}

std::vector<Claimer> CardClaim::keepers(off_t address) const {
  const std::vector<ino_t> own = numbers();
  std::vector<Claimer> found;
  for (const KeptPage& page : kept_pages()) {
    const bool is_new = found.empty() || found.back().process != page.process;
    if (is_new && page.address == address && contains(own, page.file)) {
      found.push_back({page.process, name_of_process(page.process)});
    }
  }
  return found;
}

std::string CardClaim::names(const std::string& card, ClaimRole role) const {
  const auto found = claimers(card, role);
  if (!found.empty()) return names_of(found);
  // A program of Demarc in another role has other bytes, or is known by what it keeps.
  const std::vector<ino_t> own = numbers();
  std::vector<pid_t> programs;
  for (const KeptPage& page : kept_pages()) {
    if (page.address >= first_address && contains(own, page.file)) programs.push_back(page.process);
  }
  const auto other = locker_of(own, ranges_of(card, role), programs);
  return other ? name_with_user(*other) +
                     ", which has locked the file of the claims and is not a program of Demarc"
               : names_of(found);
}

std::string names_of(const std::vector<Claimer>& claimers) {
  if (claimers.empty()) return "a process that cannot be seen from here";
  std::vector<std::string> names;
  names.reserve(claimers.size());
  for (const Claimer& claimer : claimers) names.push_back(claimer.name);
  return fmt::format("process{} {}", names.size() == 1 ? "" : "es", joined(names, ", "));
}

}  // namespace demarc::lease
