// Copies and fills of coloured memory at addresses of its window, in the order of a stream. Where
// one side is other memory, the bytes go through memory of the card that has no colour and is
// allocated and freed in the stream's order, so that captured copies become nodes of their graph.
#pragma once

#include <cstdint>
#include <functional>

#include "demarc/base/result.hpp"
#include "demarc/device/device.hpp"
#include "demarc/driver/driver_api.hpp"
#include "demarc/guest/colored_code.hpp"
#include "demarc/guest/program_record.hpp"

namespace demarc::cuda {

class WindowCopies {
 public:
  // Where the first byte of a rectangle lies and how far its rows are apart.
  struct Side {
    enum class Kind {
      window,
      host,
      device,
      unified,  // whatever the driver knows of the address
    };
    Kind kind = Kind::unified;
    DevicePointer address = 0;
    std::uint64_t pitch = 0;
  };
  struct Size {
    std::uint64_t width = 0;  // bytes, or elements where a fill says so
    std::uint64_t height = 1;
  };

  // A copy of a neighbour waits for the piece of ours that is under way: 4 MiB take 75 us on the
  // way to the host of an H200, and copies in pieces of them are at four fifths of the plain rate
  // there.
  static constexpr std::uint64_t piece_bytes = std::uint64_t{4} << 20U;

  // The kernels, rewritten for the share. `api` outlives the copies, of which each uses at most
  // `staged_bytes` of memory without colour.
  static Result<WindowCopies> create(const DriverApi& api, const ColoredCode& code,
                                     gpu::ComputeCapability capability,
                                     std::uint64_t staged_bytes = piece_bytes);

  // Bytes that go through memory without a colour are noted there; the record outlives the copies.
  void note_staging_in(ProgramRecord& record) { record_ = &record; }
  // Kernels that are launched are counted there; graphs launch theirs without a call.
  void count_launches_in(std::atomic<std::uint64_t>& launches) { launches_ = &launches; }

  // One side at least is the window's; the size is of something. Codes are the driver's.
  [[nodiscard]] CuResult copy(const Side& to, const Side& from, Size size, CuStream stream) const;
  // By the driver, through the page table: the window's side has the kind `device`.
  [[nodiscard]] CuResult copy_by_driver(const Side& to, const Side& from, Size size,
                                        CuStream stream) const;
  // Every element becomes the low bytes of `value`; the width counts elements of 1, 2 or 4 bytes.
  [[nodiscard]] CuResult fill(Side to, std::uint32_t value, std::uint32_t element_bytes, Size size,
                              CuStream stream) const;

  // The same by one kernel, which `use` launches or puts into a graph; what its arguments point to
  // lasts as long as that. Of a copy both sides are reached by kernels.
  using Use = std::function<CuResult(const CuKernelNode& kernel)>;
  [[nodiscard]] CuResult copy_by(const Use& use, Side to, Side from, Size size) const;
  [[nodiscard]] CuResult fill_by(const Use& use, Side to, std::uint32_t value,
                                 std::uint32_t element_bytes, Size size) const;

  // Blocks of a kernel.
  struct Grid {
    unsigned along_rows;
    unsigned rows;
  };

 private:
  WindowCopies(const DriverApi& api, std::uint64_t staged_bytes)
      : api_(&api), staged_bytes_(staged_bytes) {}
  [[nodiscard]] Use launch_in(CuStream stream) const;
  [[nodiscard]] CuResult copy_staged(const Side& to, const Side& from, Size size,
                                     CuStream stream) const;
  [[nodiscard]] CuResult copy_piece(DevicePointer staging, const Side& to, const Side& from,
                                    Size size, CuStream stream) const;

  const DriverApi* api_;
  std::uint64_t staged_bytes_;
  ProgramRecord* record_ = nullptr;
  std::atomic<std::uint64_t>* launches_ = nullptr;
  CuFunction within_ = nullptr;  // both sides are the window's
  CuFunction into_ = nullptr;
  CuFunction out_of_ = nullptr;
  CuFunction fill_ = nullptr;
};

}  // namespace demarc::cuda
