// Reads a word of each page of a window by arithmetic and through the page table.
#include "calls/window_proof.hpp"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "calls/own_calls.hpp"
#include "calls/own_stream.hpp"
#include "demarc/device/pages.hpp"

namespace demarc::cuda {
namespace {

using Side = WindowCopies::Side;
using Kind = Side::Kind;

constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);
// Places in a page at which content is compared, and looks at one that differs: kernels that write
// between two reads change it, so it must be the same both ways in one of the looks.
constexpr std::uint64_t compared_places = 8;
constexpr int max_looks = 8;

Result<void> done(CuResult code, const char* what) {
  if (code == cu_success) return {};
  return missing_capability("{} (error {})", what, code);
}

Side of_window(Kind kind, DevicePointer first) {
  return {kind, first, gpu::smallest_page_bytes};
}

Side of_words(std::span<std::uint64_t> words) {
  return {Kind::host, reinterpret_cast<DevicePointer>(words.data()), word_bytes};
}

tl::unexpected<Error> leads_elsewhere(DevicePointer first, std::uint64_t page) {
  return check_failed(
      "the page table leads address {:#x} of the window elsewhere than arithmetic does: code as it "
      "is would leave the tenant's colours",
      first + page * gpu::smallest_page_bytes);
}

tl::unexpected<Error> keeps_changing(DevicePointer first, std::uint64_t page) {
  return missing_capability(
      "the content at address {:#x} of the window changes all the time, so it cannot be compared",
      first + page * gpu::smallest_page_bytes);
}

}  // namespace

Result<std::vector<std::uint64_t>> WindowProof::read(Way way, DevicePointer first,
                                                     std::uint64_t pages, CuStream stream) const {
  std::vector<std::uint64_t> words(pages);
  const WindowCopies::Size size{word_bytes, pages};
  const CuResult code =
      way == Way::arithmetic
          ? copies_.copy(of_words(words), of_window(Kind::window, first), size, stream)
          : copies_.copy_by_driver(of_words(words), of_window(Kind::device, first), size, stream);
  DEMARC_CHECK(done(code, "the window could not be read"));
  DEMARC_CHECK(done(api_.cuStreamSynchronize(stream), "the window could not be read"));
  return words;
}

Result<WindowProof::BothWays> WindowProof::read_both(DevicePointer first, std::uint64_t pages,
                                                     CuStream stream) const {
  DEMARC_TRY(auto by_arithmetic, read(Way::arithmetic, first, pages, stream));
  DEMARC_TRY(auto by_table, read(Way::page_table, first, pages, stream));
  return BothWays{std::move(by_arithmetic), std::move(by_table)};
}

Result<void> WindowProof::number(DevicePointer first, std::uint64_t bytes) const {
  const OwnCalls own;
  const OwnStream stream(api_);
  DEMARC_CHECK(done(stream.error(), "there is no stream to prove the window in"));
  // No number of an earlier proof, nor of one in another process, is met again.
  std::random_device device;
  const std::uint64_t start = std::uint64_t{device()} << 32U | device();
  std::vector<std::uint64_t> written(bytes / gpu::smallest_page_bytes);
  for (std::size_t page = 0; page < written.size(); ++page) written[page] = start + page;
  const WindowCopies::Size size{word_bytes, written.size()};
  DEMARC_CHECK(
      done(copies_.copy(of_window(Kind::window, first), of_words(written), size, stream.get()),
           "the window could not be numbered"));
  DEMARC_TRY(const auto found, read(Way::page_table, first, written.size(), stream.get()));
  const WindowCopies::Size halves{2, written.size()};
  DEMARC_CHECK(done(copies_.fill(of_window(Kind::window, first), 0, 4, halves, stream.get()),
                    "the window could not be cleared"));
  DEMARC_CHECK(done(api_.cuStreamSynchronize(stream.get()), "the window could not be cleared"));
  const auto [wrong, right] = std::mismatch(found.begin(), found.end(), written.begin());
  if (wrong == found.end()) return {};
  return leads_elsewhere(first, static_cast<std::uint64_t>(wrong - found.begin()));
}

// Both ways at once, and in turns the one or the other first, so that no work of the program that
// repeats itself falls between them each time.
Result<WindowProof::Sameness> WindowProof::look_again(DevicePointer at, std::uint64_t by_arithmetic,
                                                      std::uint64_t by_table,
                                                      CuStream stream) const {
  bool changed = false;
  for (int look = 1; look < max_looks; ++look) {
    ::usleep(static_cast<unsigned>(look) * 100U);
    const bool table_first = look % 2 != 0;
    DEMARC_TRY(const auto one,
               read(table_first ? Way::page_table : Way::arithmetic, at, 1, stream));
    DEMARC_TRY(const auto other,
               read(table_first ? Way::arithmetic : Way::page_table, at, 1, stream));
    if (one == other) return Sameness::seen;
    const auto& [arithmetic, table] = table_first ? std::tie(other, one) : std::tie(one, other);
    changed = changed || arithmetic[0] != by_arithmetic || table[0] != by_table;
  }
  return changed ? Sameness::unclear : Sameness::never;
}

Result<void> WindowProof::compare(DevicePointer first, std::uint64_t bytes) const {
  const OwnCalls own;
  const OwnStream stream(api_);
  DEMARC_CHECK(done(stream.error(), "there is no stream to prove the window in"));
  const std::uint64_t pages = bytes / gpu::smallest_page_bytes;
  std::optional<std::uint64_t> unclear;  // a page; one that leads elsewhere may come after it
  for (std::uint64_t place = 0; place < compared_places; ++place) {
    const DevicePointer at = first + place * (gpu::smallest_page_bytes / compared_places);
    DEMARC_TRY(const BothWays before, read_both(at, pages, stream.get()));
    std::vector<std::uint64_t> differ;
    for (std::uint64_t page = 0; page < pages; ++page) {
      if (before.by_arithmetic[page] != before.by_table[page]) differ.push_back(page);
    }
    for (const std::uint64_t page : differ) {
      DEMARC_TRY(const Sameness found,
                 look_again(at + page * gpu::smallest_page_bytes, before.by_arithmetic[page],
                            before.by_table[page], stream.get()));
      if (found == Sameness::never) return leads_elsewhere(first, page);
      if (found == Sameness::unclear && !unclear) unclear = page;
    }
  }
  if (unclear) return keeps_changing(first, *unclear);
  return {};
}

}  // namespace demarc::cuda
