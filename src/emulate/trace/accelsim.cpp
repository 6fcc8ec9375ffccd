// Reads traces in Accel-Sim's text format and replays them into a trace sink.
//
// Accel-Sim's trace text. A kernel file has lines "-key = value" (kernel name, grid dim, block dim,
// shmem), then, for every block, "#BEGIN_TB", "thread block = x,y,z", and for every warp "warp =
// w", "insts = n" and n instruction lines (accelsim_line.hpp), then "#END_TB". An application's
// kernelslist.g names its kernel files, one a line, among copies "MemcpyHtoD,address,bytes".
#include <bit>
#include <charconv>
#include <map>
#include <tuple>

#include "demarc/base/files.hpp"
#include "trace/accelsim_line.hpp"
#include "trace/accelsim_text.hpp"

namespace demarc::emulate {

namespace {

bool read_triple(std::string_view text, std::array<std::uint32_t, 3>& out) {
  if (text.starts_with('(') && text.ends_with(')')) text = text.substr(1, text.size() - 2);
  const char* at = text.data();
  const char* const end = at + text.size();
  for (unsigned i = 0; i < 3; ++i) {
    if (i > 0 && (at == end || *at++ != ',')) return false;
    const auto result = std::from_chars(at, end, out[i]);
    if (result.ec != std::errc{}) return false;
    at = result.ptr;
  }
  return at == end;
}

std::string_view after_equals(std::string_view line) {
  const std::size_t at = line.find('=');
  return at == std::string_view::npos ? std::string_view() : without_blanks(line.substr(at + 1));
}

bool number_after_equals(std::string_view line, std::uint64_t most, std::uint64_t& value) {
  AccelsimWords words{after_equals(line)};
  return words.number(value, 10) && value <= most && without_blanks(words.rest).empty();
}

// Emits the events of a block, in pieces.
class AccelsimBlock {
 public:
  explicit AccelsimBlock(TraceSink& sink) : sink_(sink) {}

  void start(std::uint32_t block) { block_ = block; }
  void warp(std::uint32_t warp) {
    words_.push_back(trace_detail::head(trace_detail::kind_warp, warp, ~std::uint32_t{0}));
  }
  Result<void> add(std::uint32_t id, MemorySpace space, const AccelsimInstruction& from) {
    if (sink_.wants_instructions()) {
      words_.push_back(trace_detail::head(trace_detail::kind_run, id, from.mask));
      words_.push_back(1);
    }
    if (from.has_addresses && from.mask != 0) access(id, space, from);
    return words_.size() < (std::size_t{1} << 16U) ? Result<void>() : flush(false);
  }
  Result<void> flush(bool last) {
    TraceChunk chunk;
    chunk.block = block_;
    chunk.last = last;
    chunk.words = words_;
    auto consumed = sink_.consume(chunk);
    words_.clear();
    return consumed;
  }

 private:
  void access(std::uint32_t id, MemorySpace space, const AccelsimInstruction& from) {
    const auto first = static_cast<unsigned>(std::countr_zero(from.mask));
    const std::uint32_t others = from.mask & (from.mask - 1);
    std::int64_t stride = 0;
    if (others != 0) {
      const auto second = static_cast<unsigned>(std::countr_zero(others));
      stride = static_cast<std::int64_t>(from.addresses[second] - from.addresses[first]) /
               static_cast<std::int64_t>(second - first);
    }
    const std::uint64_t base =
        from.addresses[first] - static_cast<std::uint64_t>(stride) * std::uint64_t{first};
    bool affine = stride == ((stride << 8) >> 8);  // its word holds the space too
    for (std::uint32_t rest = from.mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      affine = affine && from.addresses[lane] == base + static_cast<std::uint64_t>(stride) * lane;
    }
    const auto code = static_cast<std::uint64_t>(space);
    if (affine) {
      words_.push_back(trace_detail::head(trace_detail::kind_affine, id, from.mask));
      words_.push_back(base);
      words_.push_back((static_cast<std::uint64_t>(stride) & 0x00ffffffffffffffU) | (code << 56U));
      return;
    }
    words_.push_back(trace_detail::head(trace_detail::kind_scattered, id, from.mask));
    words_.push_back(code);
    for (std::uint32_t rest = from.mask; rest != 0; rest &= rest - 1)
      words_.push_back(from.addresses[static_cast<unsigned>(std::countr_zero(rest))]);
  }

  TraceSink& sink_;
  std::uint32_t block_ = 0;
  std::vector<std::uint64_t> words_;
};

class AccelsimImport {
 public:
  AccelsimImport(AccelsimText text, TraceSink& sink) : text_(std::move(text)), block_(sink) {}

  // First pass: the header and the static instructions. Second: the events.
  Result<ImportedKernel> run(TraceSink& sink) {
    DEMARC_CHECK(pass(false));
    if (code_.size() > 0x1fffffffU) return text_.fail("more than 2^29 different instructions");
    for (auto& [key, instruction] : code_) {
      instruction.id = static_cast<std::uint32_t>(header_.instructions.size());
      header_.instructions.push_back(std::move(instruction.description));
    }
    DEMARC_CHECK(text_.rewind());
    DEMARC_CHECK(sink.begin_kernel(header_));
    imported_.kernel = header_.kernel;
    DEMARC_CHECK(pass(true));
    DEMARC_CHECK(sink.end_kernel());
    return imported_;
  }

 private:
  // Two functions may have the same offset, so the text belongs to it.
  using Key = std::tuple<std::uint64_t, std::string, std::uint32_t>;  // PC, text, bytes
  struct CodeEntry {
    std::uint32_t id = 0;
    TraceInstruction description;
  };
  // The address windows of generic accesses.
  static constexpr std::uint64_t window_bytes = std::uint64_t{1} << 24U;

  Result<void> pass(bool emits) {
    emits_ = emits;
    next_block_ = 0;
    in_header_ = true;
    in_block_ = has_number_ = in_warp_ = false;
    std::string_view line;
    for (;;) {
      DEMARC_TRY(const bool more, text_.next(line));
      if (!more) break;
      DEMARC_CHECK(read(line));
    }
    if (in_block_) return text_.fail("the trace ends inside a block: #END_TB is missing");
    if (in_header_) return text_.fail("the trace ends before any #BEGIN_TB");
    const std::uint64_t blocks = std::uint64_t{header_.grid[0]} * header_.grid[1] * header_.grid[2];
    if (next_block_ != blocks) {
      return text_.fail(
          fmt::format("the trace ends after {} of the {} blocks of its grid", next_block_, blocks));
    }
    return {};
  }

  Result<void> read(std::string_view line) {
    if (line == "#BEGIN_TB") return begin_block();
    if (line == "#END_TB") return end_block();
    if (line[0] == '#') return {};
    if (line[0] == '-') {
      if (!in_header_)
        return text_.fail("a header line after the first block: a file has one kernel");
      return read_key(line);
    }
    if (!in_block_) {
      return text_.fail(
          "an instruction outside of #BEGIN_TB … #END_TB: run Accel-Sim's post-traces-processing "
          "on what the tracer wrote first");
    }
    if (line.starts_with("thread block")) return number_block(line);
    if (line.starts_with("warp")) return begin_warp(line);
    if (line.starts_with("insts")) {
      if (!in_warp_ || !number_after_equals(line, ~std::uint64_t{0}, announced_))
        return text_.fail("'insts' must be followed by a number and belongs to a warp");
      return {};
    }
    return instruction(line);
  }

  Result<void> begin_block() {
    if (in_header_) {
      if (header_.kernel.empty()) return text_.fail("the header has no '-kernel name = NAME'");
      if (header_.grid[0] == 0) return text_.fail("the header has no '-grid dim = (x,y,z)'");
      if (header_.block[0] == 0) return text_.fail("the header has no '-block dim = (x,y,z)'");
      warps_ = (header_.block[0] * header_.block[1] * header_.block[2] + 31) / 32;
    }
    if (in_block_) return text_.fail("#BEGIN_TB inside a block: #END_TB is missing");
    in_header_ = false;
    in_block_ = true;
    has_number_ = false;
    return {};
  }

  Result<void> number_block(std::string_view line) {
    std::array<std::uint32_t, 3> at{};
    const auto& grid = header_.grid;
    if (has_number_ || !read_triple(after_equals(line), at))
      return text_.fail("'thread block' must be followed by x,y,z, once per block");
    if (at[0] >= grid[0] || at[1] >= grid[1] || at[2] >= grid[2]) {
      return text_.fail(fmt::format("block {},{},{} is outside of the grid {},{},{}", at[0], at[1],
                                    at[2], grid[0], grid[1], grid[2]));
    }
    const std::uint32_t number = at[0] + grid[0] * (at[1] + grid[1] * at[2]);
    if (number != next_block_) {
      return text_.fail(fmt::format(
          "block {},{},{} is number {} of the grid, where number {} must stand: all blocks, in "
          "ascending order",
          at[0], at[1], at[2], number, next_block_));
    }
    next_block_ = std::uint64_t{number} + 1;
    has_number_ = true;
    block_.start(number);
    if (emits_) ++imported_.blocks;
    return {};
  }

  Result<void> begin_warp(std::string_view line) {
    DEMARC_CHECK(end_warp());
    std::uint64_t number = 0;
    if (!has_number_) return text_.fail("a warp before 'thread block = x,y,z'");
    if (!number_after_equals(line, ~std::uint64_t{0}, number))
      return text_.fail("'warp' must be followed by a number");
    if (number >= warps_)
      return text_.fail(fmt::format("warp {} of a block of {} warps", number, warps_));
    in_warp_ = true;
    announced_ = unannounced;
    found_ = 0;
    if (emits_) {
      block_.warp(static_cast<std::uint32_t>(number));
      ++imported_.warps;
    }
    return {};
  }

  Result<void> end_warp() {
    if (in_warp_ && announced_ != unannounced && announced_ != found_) {
      return text_.fail(
          fmt::format("'insts = {}' does not match the {} instructions of the warp that ends here",
                      announced_, found_));
    }
    in_warp_ = false;
    return {};
  }

  Result<void> end_block() {
    if (!in_block_ || !has_number_)
      return text_.fail("#END_TB without #BEGIN_TB and 'thread block = x,y,z'");
    DEMARC_CHECK(end_warp());
    in_block_ = false;
    return emits_ ? block_.flush(true) : Result<void>();
  }

  Result<void> instruction(std::string_view line) {
    if (!in_warp_) return text_.fail("an instruction before 'warp = w'");
    AccelsimInstruction found;
    if (const auto lack = parse_accelsim_line(line, has_lines_, found))
      return text_.fail(fmt::format("this instruction line lacks {}", *lack));
    ++found_;
    found.description.function = header_.kernel;
    Key key(found.pc, found.description.text, found.description.bytes);
    if (!emits_) {
      code_.try_emplace(std::move(key), CodeEntry{0, std::move(found.description)});
      return {};
    }
    const auto known = code_.find(key);
    if (known == code_.end()) return text_.fail("the file changed while it was read");
    ++imported_.warp_instructions;
    if (found.has_addresses && found.mask != 0) ++imported_.memory_accesses;
    const MemorySpace space = space_of(found);
    return block_.add(known->second.id, space, found);
  }

  // A generic access of a warp goes where that of its first lane goes; addresses in a window become
  // offsets.
  MemorySpace space_of(AccelsimInstruction& found) const {
    if (!found.generic || found.mask == 0) return found.description.space;
    const std::uint64_t first =
        found.addresses[static_cast<unsigned>(std::countr_zero(found.mask))];
    for (const auto& [base, space] : windows_) {
      if (base == 0 || first < base || first - base >= window_bytes) continue;
      for (std::uint64_t& address : found.addresses) address -= base;
      return space;
    }
    return MemorySpace::global;
  }

  Result<void> read_dimensions(std::string_view line, std::uint64_t most, std::string_view name,
                               std::array<std::uint32_t, 3>& out) {
    bool right = read_triple(after_equals(line), out);
    std::uint64_t product = 1;
    for (const std::uint32_t size : out) {
      product *= size;  // below 2^64: it was at most 2^32 before
      right = right && size > 0 && product <= most;
      if (!right) {
        return text_.fail(
            fmt::format("'-{} dim' must be (x,y,z), each at least 1 and at most {} "
                        "together",
                        name, most));
      }
    }
    return {};
  }

  Result<void> read_key(std::string_view line) {
    std::uint64_t number = 0;
    if (line.starts_with("-kernel name")) {
      header_.kernel = std::string(after_equals(line));
    } else if (line.starts_with("-grid dim")) {
      return read_dimensions(line, 0xffffffffU, "grid", header_.grid);
    } else if (line.starts_with("-block dim")) {
      return read_dimensions(line, 1024, "block", header_.block);
    } else if (line.starts_with("-shmem base_addr") || line.starts_with("-local mem base_addr")) {
      AccelsimWords words{after_equals(line)};
      if (!words.number(windows_[line[1] == 's' ? 0 : 1].first, 16))
        return text_.fail("a base address must be a hexadecimal number");
    } else if (line.starts_with("-shmem")) {
      if (!number_after_equals(line, std::uint64_t{1} << 20U, number))
        return text_.fail("'-shmem' must be a number of bytes up to 1 MiB");
      header_.shared_bytes = static_cast<std::uint32_t>(number);
    } else if (line.starts_with("-enable lineinfo")) {
      if (!number_after_equals(line, 1, number))
        return text_.fail("'-enable lineinfo' must be 0 or 1");
      has_lines_ = number == 1;
    } else if (line.starts_with("-accelsim tracer version")) {
      if (!number_after_equals(line, 1000, number))
        return text_.fail("'-accelsim tracer version' must be a number");
      if (number < 3) {
        return text_.fail(fmt::format(
            "tracer version {}: its lines differ from those of version 3 and later", number));
      }
    }
    return {};
  }

  static constexpr std::uint64_t unannounced = ~std::uint64_t{0};

  AccelsimText text_;
  AccelsimBlock block_;
  TraceHeader header_{{}, {0, 0, 0}, {0, 0, 0}, 0, {}, {}};
  std::pair<std::uint64_t, MemorySpace> windows_[2] = {{0, MemorySpace::shared},
                                                       {0, MemorySpace::local}};
  bool has_lines_ = false;
  std::map<Key, CodeEntry> code_;  // ids in this order
  ImportedKernel imported_;
  bool emits_ = false;
  std::uint32_t warps_ = 0;
  bool in_header_ = true;
  bool in_block_ = false;
  bool has_number_ = false;  // the block in hand
  bool in_warp_ = false;
  std::uint64_t next_block_ = 0;  // behind the last one
  std::uint64_t announced_ = unannounced;
  std::uint64_t found_ = 0;
};

bool lists_kernels(std::string_view line) {
  return line.starts_with("Memcpy") || line.starts_with("kernel-");
}

// The kernel files that a list names, those unpacked since in place of the packed ones.
Result<std::vector<std::filesystem::path>> listed_kernels(const std::filesystem::path& path) {
  DEMARC_TRY(AccelsimText text, AccelsimText::open(path));
  std::vector<std::filesystem::path> kernels;
  std::string_view line;
  for (;;) {
    DEMARC_TRY(const bool more, text.next(line));
    if (!more) break;
    if (line[0] == '#' || line.starts_with("Memcpy")) continue;
    if (!lists_kernels(line)) {
      return text.fail(
          "a list of kernels has lines 'kernel-…' (a file beside it) and 'Memcpy…,address,bytes'");
    }
    std::filesystem::path kernel = path.parent_path() / line;
    std::error_code ignored;
    if (line.ends_with(".xz") && !std::filesystem::exists(kernel, ignored))
      kernel.replace_extension();
    if (!std::filesystem::exists(kernel, ignored))
      return text.fail(fmt::format("{} does not exist", kernel.string()));
    kernels.push_back(std::move(kernel));
  }
  if (kernels.empty()) return invalid_input("{}: no kernel in the list", path.string());
  return kernels;
}

std::string_view first_line_of(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = without_blanks(text.substr(0, end));
    if (!line.empty() && line[0] != '#') return line;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

}  // namespace

bool begins_accelsim_trace(std::string_view beginning) {
  const std::string_view line = first_line_of(beginning);
  return line.starts_with('-') || lists_kernels(line) || !unpacker_of(beginning).empty();
}

Result<std::vector<ImportedKernel>> read_accelsim_trace(const std::filesystem::path& path,
                                                        TraceSink& sink) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored))
    return invalid_input("{}: an Accel-Sim trace is read twice: it must be a file", path.string());
  std::vector<std::filesystem::path> files{path};
  DEMARC_TRY(const std::string beginning, read_file(path, 4096));
  if (lists_kernels(first_line_of(beginning))) {
    DEMARC_TRY(files, listed_kernels(path));
  }
  std::vector<ImportedKernel> imported;
  for (const auto& file : files) {
    DEMARC_TRY(AccelsimText text, AccelsimText::open(file));
    DEMARC_TRY(ImportedKernel kernel, AccelsimImport(std::move(text), sink).run(sink));
    imported.push_back(std::move(kernel));
  }
  DEMARC_CHECK(sink.end());
  return imported;
}

}  // namespace demarc::emulate
