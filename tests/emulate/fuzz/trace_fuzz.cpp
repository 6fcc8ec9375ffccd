// libFuzzer: the trace readers. The first byte says what the rest is: 'r' the records of a trace
// file (compressed here, for the reader), 'z' what stands behind its mark, 'a' an Accel-Sim trace.
// Whatever is accepted is decoded to the last event.
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include <cstdlib>
#include <string>

#include "demarc/emulate/trace.hpp"

namespace {

class Reader final : public demarc::emulate::TraceSink {
 public:
  demarc::Result<void> begin_kernel(const demarc::emulate::TraceHeader& header) override {
    instructions_ = header.instructions.size();
    return {};
  }
  demarc::Result<void> consume(const demarc::emulate::TraceChunk& chunk) override {
    std::uint32_t warp = 0;
    demarc::emulate::visit_events(chunk, warp, *this);
    return {};
  }
  // What a consumer relies on.
  void run(const demarc::emulate::RunEvent& event) const {
    if (std::size_t{event.first} + event.count > instructions_) std::abort();
  }
  void access(const demarc::emulate::AccessEvent& event) const {
    if (event.instruction >= instructions_ || event.space > demarc::emulate::MemorySpace::param)
      std::abort();
  }

 private:
  std::size_t instructions_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const char kind = static_cast<char>(data[0]);
  std::string content(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (kind == 'r') {
    std::string packed(ZSTD_compressBound(content.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), content.data(), content.size(), 1));
    content = "DMRCTRC1" + packed;
  } else if (kind == 'z') {
    content.insert(0, "DMRCTRC1");
  }
  const int file = ::memfd_create("trace", 0);
  if (file < 0 ||
      ::write(file, content.data(), content.size()) != static_cast<ssize_t>(content.size()))
    std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  Reader sink;
  if (kind == 'a') {
    (void)demarc::emulate::read_accelsim_trace(path, sink);
  } else {
    (void)demarc::emulate::read_trace(path, sink);
  }
  ::close(file);
  return 0;
}
