// Reads and writes access streams in their binary form.
//
// It has little-endian 64-bit words: magic, number of kernels. Each kernel has a word with threads
// (24 bits), registers per thread (8 bits) and shared bytes (32 bits), then the number of blocks.
// Each warp has its number of words, then the words of its steps as in PackedSteps.
#include "demarc/base/files.hpp"
#include "demarc/sim/memory/access_stream.hpp"
#include "demarc/sim/memory/emulated.hpp"
#include "demarc/sim/memory/spec.hpp"

namespace demarc::sim::memory {
namespace {

constexpr std::string_view access_magic = "DMRCACC1";

void put_word(std::string& out, std::uint64_t word) {
  for (unsigned byte = 0; byte < 8; ++byte) {
    out.push_back(static_cast<char>((word >> (8U * byte)) & 0xffU));
  }
}

class WordReader {
 public:
  WordReader(std::string_view bytes, std::string_view source) : bytes_(bytes), source_(source) {}

  [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }
  [[nodiscard]] std::uint64_t words_left() const { return (bytes_.size() - at_) / 8; }
  Result<std::uint64_t> word() {
    if (bytes_.size() - at_ < 8) {
      return invalid_input("{}: byte {}: the stream ends in the middle", source_, at_);
    }
    std::uint64_t value = 0;
    for (unsigned byte = 0; byte < 8; ++byte) {
      value |= std::uint64_t{static_cast<unsigned char>(bytes_[at_ + byte])} << (8U * byte);
    }
    at_ += 8;
    return value;
  }
  [[nodiscard]] tl::unexpected<Error> wrong(std::string_view what) const {
    return invalid_input("{}: byte {}: {}", source_, at_ - 8, what);
  }

 private:
  std::string_view bytes_;
  std::string_view source_;
  std::size_t at_ = 8;  // behind the magic
};

Result<PackedSteps> read_steps(WordReader& reader) {
  PackedSteps steps;
  DEMARC_TRY(const std::uint64_t words, reader.word());
  if (words > reader.words_left())
    return reader.wrong("a warp has more words than follow in the stream");
  for (std::uint64_t i = 0; i < words; ++i) {
    DEMARC_TRY(const std::uint64_t head, reader.word());
    Step step;
    if (read_head(head, step)) {
      if (++i == words) return reader.wrong("the words here do not make a step");
      DEMARC_TRY(const std::uint64_t floats, reader.word());
      if (floats == 0 || floats > step.instructions) {
        return reader.wrong(
            "a step has fewer instructions than compute with floating-point "
            "numbers, or none of these");
      }
      step.floats = static_cast<std::uint32_t>(floats);
    }
    const bool access = step.kind <= StepKind::reduce;
    if (step.kind >= StepKind::end || step.count > 32 || access != (step.count > 0) ||
        step.count > words - i - 1 || (step.past_l1 && step.kind != StepKind::load) ||
        (step.streams && !access) || (step.partial && step.kind != StepKind::store)) {
      return reader.wrong("the words here do not make a step");
    }
    for (std::size_t line = 0; line < step.count; ++line, ++i) {
      DEMARC_TRY(const std::uint64_t word, reader.word());
      const auto entry = LineEntry::from_word(word);
      if (!entry)
        return reader.wrong("an entry is the address of a line and a mask of its sectors");
      step.lines[line] = *entry;
    }
    steps.add(step);
  }
  return steps;
}

}  // namespace

std::string access_binary(const PackedLaunch& launch) {
  std::string out(access_magic);
  put_word(out, launch.kernels.size());
  for (const PackedKernel& kernel : launch.kernels) {
    put_word(out, kernel.shape.threads | (std::uint64_t{kernel.shape.registers} << 24U) |
                      (std::uint64_t{kernel.shape.shared_bytes} << 32U));
    put_word(out, kernel.blocks.size());
    for (const auto& block : kernel.blocks) {
      for (const PackedSteps& warp : block->warps) {
        put_word(out, warp.bytes() / 8);
        for (const std::uint64_t word : warp.words()) put_word(out, word);
      }
    }
  }
  return out;
}

Result<std::shared_ptr<const PackedLaunch>> parse_access_binary(std::string_view bytes,
                                                                std::string_view source) {
  if (bytes.substr(0, 8) != access_magic) {
    return invalid_input("{}: an access stream begins with {}", source, access_magic);
  }
  WordReader reader(bytes, source);
  auto launch = std::make_shared<PackedLaunch>();
  DEMARC_TRY(const std::uint64_t kernels, reader.word());
  if (kernels == 0) return reader.wrong("no kernel");
  for (std::uint64_t k = 0; k < kernels; ++k) {
    PackedKernel kernel;
    DEMARC_TRY(const std::uint64_t shape, reader.word());
    kernel.shape.threads = static_cast<std::uint32_t>(shape & 0xffffffU);
    kernel.shape.registers = static_cast<std::uint32_t>(shape >> 24U & 0xffU);
    kernel.shape.shared_bytes = static_cast<std::uint32_t>(shape >> 32U);
    if (kernel.shape.threads == 0 || kernel.shape.threads > 1024) {
      return reader.wrong("a block has 1 to 1024 threads");
    }
    if (kernel.shape.shared_bytes > 1U << 20U) {
      return reader.wrong("a block has at most 1 MiB of shared memory");
    }
    DEMARC_TRY(const std::uint64_t blocks, reader.word());
    if (blocks == 0 || blocks > reader.words_left())
      return reader.wrong("the number of blocks is 0 or larger than the stream");
    kernel.shape.blocks = static_cast<std::uint32_t>(blocks);
    for (std::uint64_t b = 0; b < blocks; ++b) {
      auto block = std::make_shared<PackedBlock>();
      for (std::uint32_t w = 0; w < kernel.shape.warps(); ++w) {
        DEMARC_TRY(PackedSteps steps, read_steps(reader));
        block->warps.push_back(std::move(steps));
      }
      kernel.blocks.push_back(std::move(block));
    }
    launch->kernels.push_back(std::move(kernel));
  }
  if (!reader.at_end()) return invalid_input("{}: bytes follow the last kernel", source);
  return std::shared_ptr<const PackedLaunch>(launch);
}

Result<std::shared_ptr<const PackedLaunch>> read_access_stream(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) {  // which can be read again
    DEMARC_TRY(const std::string beginning, read_file(path, 4096));
    if (emulate::begins_accelsim_trace(beginning)) return read_traced_launch(path);
  }
  DEMARC_TRY(const std::string bytes, read_file(path));
  if (bytes.starts_with(access_magic)) return parse_access_binary(bytes, path.string());
  if (emulate::begins_accelsim_trace(bytes))
    return invalid_input("{}: an Accel-Sim trace is read twice: it must be a file", path.string());
  const bool text = bytes.find('\0') == std::string::npos;
  return text ? parse_access_text(bytes, path.string()) : read_traced_launch(path);
}

}  // namespace demarc::sim::memory
