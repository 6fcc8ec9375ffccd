// A card of plain memory, whose every answer a test may plant.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "demarc/serve/card_side.hpp"

namespace demarc::serve {

class PlantedCard : public CardSide {
 public:
  static constexpr std::uint64_t share_steps = 8;
  static constexpr std::uint64_t share_bytes = share_steps << 21U;

  explicit PlantedCard(std::uint64_t pages = 450) : pages_(pages) {}

  [[nodiscard]] const std::string& uuid() const override { return uuid_; }
  [[nodiscard]] std::uint64_t pages() const override { return pages_; }
  [[nodiscard]] std::uint64_t page_bytes() const override { return 4096; }
  [[nodiscard]] Result<lease::Share> share(const color::ColorSet& colors) const override {
    if (!colors.is_well_formed()) return invalid_input("no such share");
    lease::Share share{page_bytes(), pages_, share_bytes, {}};
    if (has_table) {
      share.law = color::make_law(
          color::RemainderSteps{.pages_at = static_cast<std::uint32_t>(colors.members())});
    } else {
      share.law =
          color::make_law(color::Parities{{0xc4000}, static_cast<std::uint32_t>(colors.members())});
    }
    return share;
  }
  [[nodiscard]] std::vector<std::byte> table() const override {
    return has_table ? std::vector<std::byte>(1000, std::byte{7}) : std::vector<std::byte>{};
  }
  // Page i is a file of i bytes.
  [[nodiscard]] Result<std::vector<OwnedFile>> lend(const color::PageRun& run) const override {
    if (!lend_error.empty()) return missing_capability("{}", lend_error);
    std::vector<OwnedFile> files;
    const std::uint64_t first = run.first.raw();
    for (std::uint64_t i = first; i < first + run.count; ++i) {
      files.emplace_back(::memfd_create("page", MFD_CLOEXEC));
      if (::ftruncate(files.back().get(), static_cast<off_t>(i)) != 0) {
        return missing_capability("page {}", i);
      }
    }
    return files;
  }
  [[nodiscard]] Result<void> scrub(const color::ColorSet& colors,
                                   const color::Extent& extent) override {
    scrubs.push_back(extent);
    if (!scrub_error.empty()) return missing_capability("{}", scrub_error);
    std::memset(memory(colors.members()) + extent.first.raw(), 0, extent.bytes);
    return {};
  }
  [[nodiscard]] Result<void> check_alive() const override {
    ++looks;
    if (dead.empty()) return {};
    return check_failed("{}", dead);
  }
  [[nodiscard]] Result<void> prove(const gpu::TpcSet& tpcs) override {
    proved.push_back(to_string(tpcs));
    if (tpcs.contains(unproved_tpc)) return check_failed("TPC {} is not kept", unproved_tpc);
    return {};
  }
  [[nodiscard]] Result<lease::ProvedMask> mask(const gpu::TpcSet& tpcs) const override {
    const auto count = tpcs.size();
    return lease::ProvedMask{{count, 0, 0, 1U << 31}, 2 * count};
  }
  [[nodiscard]] Result<void> move(const std::string& control, const gpu::TpcSet& tpcs) override {
    moves.push_back(control + " " + to_string(tpcs));
    if (control == immovable) return check_failed("it does not move");
    return {};
  }

  // Linear bytes of a share; those of a process that was forked too.
  [[nodiscard]] char* memory(std::uint64_t colors) {
    char*& bytes = memory_[colors];
    if (bytes == nullptr) {
      bytes = static_cast<char*>(
          ::mmap(nullptr, share_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    }
    return bytes;
  }
  ~PlantedCard() override {
    for (const auto& [colors, bytes] : memory_) ::munmap(bytes, share_bytes);
  }
  PlantedCard(const PlantedCard&) = delete;
  PlantedCard& operator=(const PlantedCard&) = delete;

  bool has_table = false;
  std::string lend_error, scrub_error, dead;
  mutable int looks = 0;  // whether it is alive
  gpu::TpcIndex unproved_tpc{127};
  std::string immovable;
  std::vector<std::string> proved, moves;
  std::vector<color::Extent> scrubs;

 private:
  std::string uuid_ = "GPU-planted";
  std::uint64_t pages_;
  std::map<std::uint64_t, char*> memory_;
};

}  // namespace demarc::serve
