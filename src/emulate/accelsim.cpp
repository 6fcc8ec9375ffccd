// Accel-Sim's trace text. A kernel file has lines "-key = value" (kernel name, grid dim, block dim,
// shmem), then, for every block, "#BEGIN_TB", "thread block = x,y,z", and for every warp "warp =
// w", "insts = n" and n lines
//   PC mask ndest [dest…] OPCODE nsrc [src…] width [mode address…]
// where width 0 means no address; mode 0 lists one address per active lane, 1 gives base and
// stride, 2 gives a base and the distances between neighbouring active lanes. Numbers are
// hexadecimal where the tracer writes them so.
#include <bit>
#include <charconv>
#include <map>

#include "demarc/base/files.hpp"
#include "demarc/emulate/trace.hpp"

namespace demarc::emulate {

namespace {

struct AccelsimReader {
  std::string name;
  std::string_view text;
  std::size_t line = 0;

  bool next(std::string_view& out) {
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      out = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      ++line;
      while (!out.empty() && (out.back() == '\r' || out.back() == ' ')) out.remove_suffix(1);
      while (!out.empty() && out.front() == ' ') out.remove_prefix(1);
      if (!out.empty()) return true;
    }
    return false;
  }
  [[nodiscard]] tl::unexpected<Error> fail(const std::string& what) const {
    return invalid_input("{}:{}: {}", name, line, what);
  }
};

struct AccelsimWords {
  std::string_view rest;
  std::string_view next() {
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    const std::size_t end = rest.find(' ');
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end);
    return word;
  }
  bool number(std::uint64_t& value, int base) {
    std::string_view word = next();
    if (word.size() > 2 && word[0] == '0' && (word[1] == 'x' || word[1] == 'X')) {
      word.remove_prefix(2);
      base = 16;
    }
    const auto result = std::from_chars(word.data(), word.data() + word.size(), value, base);
    return !word.empty() && result.ec == std::errc{} && result.ptr == word.data() + word.size();
  }
  bool signed_number(std::int64_t& value) {
    const std::string_view word = next();
    const auto result = std::from_chars(word.data(), word.data() + word.size(), value, 10);
    return !word.empty() && result.ec == std::errc{} && result.ptr == word.data() + word.size();
  }
};

bool read_triple(std::string_view text, std::array<std::uint32_t, 3>& out) {
  std::size_t at = 0;
  while (at < text.size() && (text[at] == '(' || text[at] == ' ')) ++at;
  for (unsigned i = 0; i < 3; ++i) {
    const auto result = std::from_chars(text.data() + at, text.data() + text.size(), out[i]);
    if (result.ec != std::errc{}) return false;
    at = static_cast<std::size_t>(result.ptr - text.data());
    if (i < 2 && (at >= text.size() || text[at] != ',')) return false;
    ++at;
  }
  return true;
}

std::string_view after_equals(std::string_view line) {
  const std::size_t at = line.find('=');
  std::string_view value = at == std::string_view::npos ? std::string_view{} : line.substr(at + 1);
  while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  return value;
}

// LDG.E.64 -> global load
void classify_machine_opcode(std::string_view opcode, TraceInstruction& out) {
  const std::string_view stem = opcode.substr(0, opcode.find('.'));
  struct Row {
    std::string_view stem;
    MemorySpace space;
    AccessKind kind;
  };
  static constexpr Row rows[] = {{"LDG", MemorySpace::global, AccessKind::load},
                                 {"STG", MemorySpace::global, AccessKind::store},
                                 {"LD", MemorySpace::global, AccessKind::load},
                                 {"ST", MemorySpace::global, AccessKind::store},
                                 {"LDS", MemorySpace::shared, AccessKind::load},
                                 {"STS", MemorySpace::shared, AccessKind::store},
                                 {"LDSM", MemorySpace::shared, AccessKind::load},
                                 {"LDL", MemorySpace::local, AccessKind::load},
                                 {"STL", MemorySpace::local, AccessKind::store},
                                 {"LDC", MemorySpace::constant, AccessKind::load},
                                 {"ATOM", MemorySpace::global, AccessKind::atomic},
                                 {"ATOMG", MemorySpace::global, AccessKind::atomic},
                                 {"RED", MemorySpace::global, AccessKind::atomic},
                                 {"ATOMS", MemorySpace::shared, AccessKind::atomic},
                                 {"LDGSTS", MemorySpace::global, AccessKind::load}};
  for (const Row& row : rows) {
    if (row.stem != stem) continue;
    out.space = row.space;
    out.kind = row.kind;
  }
}

struct AccelsimInstruction {
  std::uint64_t pc = 0;
  std::uint32_t mask = 0;
  TraceInstruction description;
  bool has_addresses = false;
  std::vector<std::uint64_t> addresses;  // of the active lanes
};

bool parse_instruction(std::string_view line, AccelsimInstruction& out) {
  AccelsimWords words{line};
  std::uint64_t mask = 0;
  std::uint64_t count = 0;
  if (!words.number(out.pc, 16) || !words.number(mask, 16) || mask > 0xffffffffU ||
      !words.number(count, 10) || count > 64)
    return false;
  out.mask = static_cast<std::uint32_t>(mask);
  for (std::uint64_t i = 0; i < count; ++i) words.next();
  const std::string_view opcode = words.next();
  if (opcode.empty() || !words.number(count, 10) || count > 64) return false;
  for (std::uint64_t i = 0; i < count; ++i) words.next();
  std::uint64_t width = 0;
  if (!words.number(width, 10) || width > 4096) return false;
  out.description.text = std::string(opcode);
  classify_machine_opcode(opcode, out.description);
  out.description.bytes = static_cast<std::uint32_t>(width);
  out.has_addresses = width != 0;
  if (width == 0) return true;
  std::uint64_t mode = 0;
  if (!words.number(mode, 10)) return false;
  const auto lanes = static_cast<unsigned>(std::popcount(out.mask));
  std::uint64_t base = 0;
  switch (mode) {
    case 0:
      for (unsigned i = 0; i < lanes; ++i) {
        if (!words.number(base, 16)) return false;
        out.addresses.push_back(base);
      }
      return true;
    case 1: {
      std::int64_t stride = 0;
      if (!words.number(base, 16) || !words.signed_number(stride)) return false;
      for (unsigned i = 0; i < lanes; ++i)
        out.addresses.push_back(base + static_cast<std::uint64_t>(stride) * i);
      return true;
    }
    case 2:
      if (!words.number(base, 16)) return false;
      if (lanes > 0) out.addresses.push_back(base);
      for (unsigned i = 1; i < lanes; ++i) {
        std::int64_t delta = 0;
        if (!words.signed_number(delta)) return false;
        out.addresses.push_back(out.addresses.back() + static_cast<std::uint64_t>(delta));
      }
      return true;
    default:
      return false;
  }
}

class AccelsimImport {
 public:
  AccelsimImport(AccelsimReader reader, TraceSink& sink)
      : reader_(std::move(reader)), sink_(sink) {}

  // First pass: the header and the static instructions. Second: the events.
  Result<void> run() {
    const AccelsimReader start = reader_;
    DEMARC_CHECK(pass(false));
    reader_ = start;
    DEMARC_CHECK(sink_.begin_kernel(header_));
    DEMARC_CHECK(pass(true));
    DEMARC_CHECK(sink_.end_kernel());
    return sink_.end();
  }

 private:
  Result<void> pass(bool emits) {
    std::string_view line;
    std::vector<std::uint64_t> words;
    bool in_block = false;
    std::uint32_t block = 0;
    std::uint32_t warp = 0;
    while (reader_.next(line)) {
      if (line[0] == '-') {
        if (auto read = read_key(line); !read) return read;
      } else if (line == "#BEGIN_TB") {
        in_block = true;
        words.clear();
      } else if (line == "#END_TB") {
        if (emits) {
          TraceChunk chunk;
          chunk.block = block;
          chunk.last = true;
          chunk.words = words;
          DEMARC_CHECK(sink_.consume(chunk));
        }
        in_block = false;
      } else if (line[0] == '#' || line.rfind("insts", 0) == 0) {
        continue;
      } else if (line.rfind("thread block", 0) == 0) {
        std::array<std::uint32_t, 3> at{};
        if (!read_triple(after_equals(line), at))
          return reader_.fail("'thread block' must be followed by x,y,z");
        block = at[0] + header_.grid[0] * (at[1] + header_.grid[1] * at[2]);
      } else if (line.rfind("warp", 0) == 0) {
        std::uint64_t number = 0;
        AccelsimWords value{after_equals(line)};
        if (!value.number(number, 10)) return reader_.fail("'warp' must be followed by a number");
        warp = static_cast<std::uint32_t>(number);
        words.push_back(trace_detail::head(trace_detail::kind_warp, warp, full));
      } else {
        if (!in_block) return reader_.fail("an instruction outside of #BEGIN_TB … #END_TB");
        AccelsimInstruction instruction;
        if (!parse_instruction(line, instruction))
          return reader_.fail(
              "not an instruction line: PC, mask, destinations, opcode, sources, width, addresses");
        const auto [known, added] =
            ids_.emplace(instruction.pc, static_cast<std::uint32_t>(header_.instructions.size()));
        if (added) {
          instruction.description.function = header_.kernel;
          header_.instructions.push_back(instruction.description);
        }
        if (emits) append(words, known->second, instruction);
      }
    }
    if (in_block) return reader_.fail("the trace ends inside a block: #END_TB is missing");
    return {};
  }

  Result<void> read_key(std::string_view line) {
    const std::string_view value = after_equals(line);
    if (line.rfind("-kernel name", 0) == 0) header_.kernel = std::string(value);
    if (line.rfind("-grid dim", 0) == 0 && !read_triple(value, header_.grid))
      return reader_.fail("'-grid dim' must be (x,y,z)");
    if (line.rfind("-block dim", 0) == 0 && !read_triple(value, header_.block))
      return reader_.fail("'-block dim' must be (x,y,z)");
    if (line.rfind("-shmem =", 0) == 0) {
      std::uint64_t bytes = 0;
      AccelsimWords words{value};
      if (!words.number(bytes, 10)) return reader_.fail("'-shmem' must be a number");
      header_.shared_bytes = static_cast<std::uint32_t>(bytes);
    }
    return {};
  }

  void append(std::vector<std::uint64_t>& words, std::uint32_t id,
              const AccelsimInstruction& instruction) const {
    words.push_back(trace_detail::head(trace_detail::kind_run, id, instruction.mask));
    words.push_back(1);
    if (!instruction.has_addresses || instruction.mask == 0) return;
    words.push_back(trace_detail::head(trace_detail::kind_scattered, id, instruction.mask));
    words.push_back(static_cast<std::uint64_t>(instruction.description.space));
    words.insert(words.end(), instruction.addresses.begin(), instruction.addresses.end());
  }

  static constexpr std::uint32_t full = 0xffffffffU;
  AccelsimReader reader_;
  TraceSink& sink_;
  TraceHeader header_;
  std::map<std::uint64_t, std::uint32_t> ids_;  // by PC
};

}  // namespace

Result<void> read_accelsim_trace(const std::filesystem::path& path, TraceSink& sink) {
  DEMARC_TRY(const std::string text, read_file(path));
  AccelsimReader reader;
  reader.name = path.string();
  reader.text = text;
  return AccelsimImport(reader, sink).run();
}

}  // namespace demarc::emulate
