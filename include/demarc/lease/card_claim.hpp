// Claims of a card and of its parts, which all programs of Demarc on a machine see of each other:
// those of all users, with whatever socket or folder, and those in containers.
//
// A claim is a lock (F_OFD_SETLK) on bytes of a file that all programs on the card have open to
// read: the driver's library, which containers get from the host. These bytes are never written,
// they lie beyond the file's end: the card's UUID gives the first of them. The locks are those of
// an open file, so the kernel takes them back when the last process that has it open has ended,
// however it ended. Such a file is also mapped, which a process cannot undo by closing
// descriptors. The address in the file tells who has it mapped (/proc/PID/maps), and for what.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "demarc/base/owned_file.hpp"
#include "demarc/base/result.hpp"

namespace demarc::lease {

// Bit i of the words is TPC i; bit d is memory synchronisation domain d.
struct ClaimedPart {
  std::array<std::uint64_t, 2> tpcs{};
  std::uint64_t domains = 0;
  friend bool operator==(const ClaimedPart&, const ClaimedPart&) = default;
};

// Whose a part is.
enum class PartOwner : std::uint8_t {
  tenants,  // of the server that divides the card
  program,  // of demarc exec
  sharing,  // the same, and the program lets others have its TPCs too
};

enum class ClaimRole : std::uint8_t { server, tenant, program };

// What others hold of a card.
struct ClaimedCard {
  bool server = false;   // a server starts, serves or ends
  bool serving = false;  // it has divided the card and listens
  bool lent = false;     // the server's parts are still held: by the server, or by programs that
                         // outlive it
  std::array<ClaimedPart, 3> parts;  // by PartOwner
  [[nodiscard]] const ClaimedPart& of(PartOwner owner) const {
    return parts[static_cast<std::size_t>(owner)];
  }
};

// An open file that stays open in this process whatever descriptors the program closes.
class KeptFile {
 public:
  explicit KeptFile(OwnedFile file) : file_(std::move(file)) {}  // not yet
  // `address`: in the file, a multiple of the page size; it may lie beyond the end. A file can be
  // kept at several addresses.
  [[nodiscard]] Result<void> keep(off_t address);
  ~KeptFile();
  KeptFile(KeptFile&& other) noexcept;
  KeptFile& operator=(KeptFile&&) = delete;
  [[nodiscard]] int get() const { return file_.get(); }

 private:
  OwnedFile file_;
  std::vector<void*> pages_;
};
// The address by which a process is found that keeps a file open in this role.
[[nodiscard]] off_t claim_address(const std::string& card, ClaimRole role);
// The address by which processes that attached to a tenant's lease are found, and their children.
[[nodiscard]] off_t tenant_address(const std::string& card, const std::string& tenant);

// A process that keeps a claim, found by what it has mapped. Processes of other users are seen by
// root alone, and those of containers from outside alone.
struct Claimer {
  pid_t process = 0;
  std::string name;  // "4711 (python3 train.py)"
};
// "process 4711 (demarc serve)"; says so if none is seen.
[[nodiscard]] std::string names_of(const std::vector<Claimer>& claimers);

class CardClaim {
  struct File {
    std::string name;
    KeptFile kept;
  };

 public:
  // Opens the files; nothing is claimed yet. missing_capability names the file that cannot be
  // opened. A child process that is forked has the same claims.
  [[nodiscard]] static Result<CardClaim> open(const std::vector<std::string>& files);

  // The same, with files in whose place others were installed while processes have claims on them
  // that can be seen: it looks for them in the folders of those files. missing_capability names a
  // process whose file cannot be opened any more.
  [[nodiscard]] static Result<CardClaim> open_all(const std::vector<std::string>& files);

  // With the locks that these open files have.
  [[nodiscard]] static CardClaim of(std::vector<OwnedFile> files);

  // On files that were installed in the place of this object's, for add(); nothing if none were.
  [[nodiscard]] Result<std::optional<CardClaim>> on_new_files() const;
  // Their claims are this object's from now on.
  void add(CardClaim other);

  // While the object lives no other process changes claims between what it sees and what it holds.
  // missing_capability if others do not let it for so long.
  class Turn {
   public:
    explicit Turn(std::span<const File> files) : files_(files) {}
    ~Turn();
    Turn(Turn&& other) noexcept : files_(std::exchange(other.files_, {})) {}
    Turn& operator=(Turn&&) = delete;

   private:
    std::span<const File> files_;
  };
  [[nodiscard]] Result<Turn> turn(std::uint32_t patience_ms = 10'000) const;

  // Claims of this object are not among them.
  [[nodiscard]] Result<ClaimedCard> others(const std::string& card) const;
  // Takes them in the place of what this object held of the owner's. Nothing is compared.
  [[nodiscard]] Result<void> hold(const std::string& card, PartOwner owner,
                                  const ClaimedPart& part) const;
  [[nodiscard]] Result<void> hold_server(const std::string& card, bool serving) const;
  [[nodiscard]] Result<void> hold_lent(const std::string& card) const;
  // From now on the claims stay until this object goes, or the process ends.
  [[nodiscard]] Result<void> keep(const std::string& card, ClaimRole role);
  // For other processes, which share the claims then.
  [[nodiscard]] std::vector<int> files() const;
  // Other processes that keep such a claim.
  [[nodiscard]] std::vector<Claimer> claimers(const std::string& card, ClaimRole role) const {
    return keepers(claim_address(card, role));
  }
  // Their names. Where there is none, that of a process which holds locks of the card without such
  // a claim: any user who can read the files can lock them.
  [[nodiscard]] std::string names(const std::string& card, ClaimRole role) const;
  // Other processes that keep one of the files at this address.
  [[nodiscard]] std::vector<Claimer> keepers(off_t address) const;

 private:
  CardClaim() = default;
  [[nodiscard]] std::vector<ino_t> numbers() const;
  [[nodiscard]] Result<void> lock(const std::string& card, std::uint32_t first, std::uint32_t count,
                                  bool held) const;
  [[nodiscard]] Result<bool> others_hold(const std::string& card, std::uint32_t first,
                                         std::uint32_t count) const;
  std::vector<File> files_;
};

}  // namespace demarc::lease
