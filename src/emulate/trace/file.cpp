// Writes trace files and replays them, and refuses those that are cut or damaged.
#include <zstd.h>

#include <cstdio>
#include <cstring>
#include <optional>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "demarc/emulate/trace.hpp"
#include "trace/code.hpp"

namespace demarc::emulate {

namespace {

constexpr char trace_magic[8] = {'D', 'M', 'R', 'C', 'T', 'R', 'C', '1'};

// Records of the compressed stream: a tag, a length, that many bytes.
enum class TraceTag : std::uint8_t {
  kernel = 1,
  chunk = 2,
  last_chunk = 3,
  kernel_end = 4,
  end = 5
};

void put_u32(std::string& out, std::uint32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift);
}

std::uint32_t get_u32(const char* bytes) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i)
    value |= std::uint32_t{static_cast<std::uint8_t>(bytes[i])} << (8 * i);
  return value;
}

std::string header_json(const TraceHeader& header) {
  Json json;
  json["schema"] = "demarc-trace-1";
  json["kernel"] = header.kernel;
  json["grid"] = header.grid;
  json["block"] = header.block;
  json["shared_bytes"] = header.shared_bytes;
  Json instructions = Json::array();
  for (const TraceInstruction& instruction : header.instructions) {
    instructions.push_back({{"function", instruction.function},
                            {"line", instruction.line},
                            {"text", instruction.text},
                            {"space", to_string(instruction.space)},
                            {"kind", to_string(instruction.kind)},
                            {"bytes", instruction.bytes},
                            {"begins_block", instruction.begins_block}});
  }
  json["instructions"] = std::move(instructions);
  Json buffers = Json::array();
  for (const TraceBuffer& buffer : header.buffers) {
    buffers.push_back(
        {{"address", buffer.address}, {"bytes", buffer.bytes}, {"argument", buffer.argument}});
  }
  json["buffers"] = std::move(buffers);
  return json_text(json);
}

Result<std::array<std::uint32_t, 3>> read_dimensions(const Json& value, const std::string& where) {
  std::array<std::uint32_t, 3> out{};
  if (!value.is_array() || value.size() != 3)
    return invalid_input("{}: must be three numbers", where);
  for (std::size_t i = 0; i < 3; ++i) {
    if (!value[i].is_number_unsigned()) return invalid_input("{}: must be three numbers", where);
    out[i] = value[i].get<std::uint32_t>();
  }
  return out;
}

Result<TraceHeader> read_header(std::string_view text, const std::string& where) {
  DEMARC_TRY(const Json json, parse_json(text, where));
  DEMARC_TRY(JsonObject root, JsonObject::of(json, where));
  TraceHeader header;
  DEMARC_TRY(const std::string schema, root.string("schema"));
  if (schema != "demarc-trace-1")
    return invalid_input("{}: schema '{}'; this version reads 'demarc-trace-1'", where, schema);
  DEMARC_TRY(header.kernel, root.string("kernel"));
  DEMARC_TRY(const Json* grid, root.array("grid"));
  DEMARC_TRY(header.grid, read_dimensions(*grid, where + ": grid"));
  DEMARC_TRY(const Json* block, root.array("block"));
  DEMARC_TRY(header.block, read_dimensions(*block, where + ": block"));
  DEMARC_TRY(const std::int64_t shared, root.integer("shared_bytes", 0, 0xffffffffLL));
  header.shared_bytes = static_cast<std::uint32_t>(shared);
  DEMARC_TRY(const Json* instructions, root.array("instructions"));
  for (const Json& entry : *instructions) {
    DEMARC_TRY(JsonObject object, JsonObject::of(entry, where + ": instructions"));
    TraceInstruction instruction;
    DEMARC_TRY(instruction.function, object.string("function"));
    DEMARC_TRY(const std::int64_t line, object.integer("line", 0, 0xffffffffLL));
    instruction.line = static_cast<std::uint32_t>(line);
    DEMARC_TRY(instruction.text, object.string("text"));
    DEMARC_TRY(const std::string space, object.string("space"));
    for (unsigned i = 0; i <= static_cast<unsigned>(MemorySpace::param); ++i) {
      if (space == to_string(static_cast<MemorySpace>(i)))
        instruction.space = static_cast<MemorySpace>(i);
    }
    DEMARC_TRY(const std::string kind, object.string("kind"));
    for (unsigned i = 0; i <= static_cast<unsigned>(AccessKind::atomic); ++i) {
      if (kind == to_string(static_cast<AccessKind>(i)))
        instruction.kind = static_cast<AccessKind>(i);
    }
    DEMARC_TRY(const std::int64_t bytes, object.integer("bytes", 0, 4096));
    instruction.bytes = static_cast<std::uint32_t>(bytes);
    DEMARC_TRY(instruction.begins_block, object.boolean_or("begins_block", true));
    header.instructions.push_back(std::move(instruction));
  }
  DEMARC_TRY(const Json* buffers, root.array("buffers"));
  for (const Json& entry : *buffers) {
    DEMARC_TRY(JsonObject object, JsonObject::of(entry, where + ": buffers"));
    TraceBuffer buffer;
    DEMARC_TRY(const std::int64_t address, object.integer("address", 0, INT64_MAX));
    DEMARC_TRY(const std::int64_t bytes, object.integer("bytes", 0, INT64_MAX));
    DEMARC_TRY(const std::int64_t argument, object.integer("argument", 0, 100000));
    buffer.address = static_cast<std::uint64_t>(address);
    buffer.bytes = static_cast<std::uint64_t>(bytes);
    buffer.argument = static_cast<std::uint32_t>(argument);
    header.buffers.push_back(buffer);
  }
  return header;
}

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using OwnedFile = std::unique_ptr<std::FILE, FileCloser>;

}  // namespace

struct TraceFileWriter::State {
  std::filesystem::path path;
  std::optional<OutputFile> file;
  ZSTD_CCtx* context = ZSTD_createCCtx();
  std::unique_ptr<TraceCoder> coder;
  std::string record;
  std::vector<char> out;

  ~State() { ZSTD_freeCCtx(context); }

  Result<void> open() {
    if (file) return {};
    DEMARC_TRY(OutputFile opened, OutputFile::open(path));
    file.emplace(std::move(opened));
    out.resize(ZSTD_CStreamOutSize());
    return file->write(std::string_view(trace_magic, sizeof trace_magic));
  }

  Result<void> compress(std::string_view bytes, ZSTD_EndDirective mode) {
    ZSTD_inBuffer input{bytes.data(), bytes.size(), 0};
    for (;;) {
      ZSTD_outBuffer output{out.data(), out.size(), 0};
      const std::size_t left = ZSTD_compressStream2(context, &output, &input, mode);
      if (ZSTD_isError(left) != 0)
        return invalid_input("{}: compression: {}", path.string(), ZSTD_getErrorName(left));
      DEMARC_CHECK(file->write(std::string_view(out.data(), output.pos)));
      if (mode == ZSTD_e_end ? left == 0 : input.pos == input.size) return {};
    }
  }

  Result<void> put(TraceTag tag, std::string_view payload) {
    std::string head;
    head += static_cast<char>(tag);
    put_u32(head, static_cast<std::uint32_t>(payload.size()));
    DEMARC_CHECK(compress(head, ZSTD_e_continue));
    return compress(payload, ZSTD_e_continue);
  }
};

TraceFileWriter::TraceFileWriter(std::filesystem::path path, int compression_level)
    : state_(std::make_unique<State>()) {
  state_->path = std::move(path);
  ZSTD_CCtx_setParameter(state_->context, ZSTD_c_compressionLevel, compression_level);
  ZSTD_CCtx_setParameter(state_->context, ZSTD_c_checksumFlag, 1);
}

TraceFileWriter::~TraceFileWriter() = default;

Result<void> TraceFileWriter::begin_kernel(const TraceHeader& header) {
  DEMARC_CHECK(state_->open());
  state_->coder = std::make_unique<TraceCoder>(header.instructions.size());
  return state_->put(TraceTag::kernel, header_json(header));
}

Result<void> TraceFileWriter::consume(const TraceChunk& chunk) {
  std::string& record = state_->record;
  record.clear();
  put_u32(record, chunk.block);
  state_->coder->encode(chunk.words, record);
  return state_->put(chunk.last ? TraceTag::last_chunk : TraceTag::chunk, record);
}

Result<void> TraceFileWriter::end_kernel() {
  return state_->put(TraceTag::kernel_end, {});
}

Result<void> TraceFileWriter::end() {
  DEMARC_CHECK(state_->open());
  DEMARC_CHECK(state_->put(TraceTag::end, {}));
  DEMARC_CHECK(state_->compress({}, ZSTD_e_end));
  return state_->file->finish();
}

namespace {

// The compressed part of a trace file, read piece by piece.
class TraceStream {
 public:
  TraceStream(std::FILE* file, std::string name)
      : file_(file), name_(std::move(name)), input_(ZSTD_DStreamInSize()) {}
  ~TraceStream() { ZSTD_freeDCtx(context_); }
  TraceStream(const TraceStream&) = delete;
  TraceStream& operator=(const TraceStream&) = delete;

  Result<void> read(std::size_t bytes, std::string& out) {
    // Grows as data really comes: a damaged length must not allocate gigabytes.
    out.clear();
    while (out.size() < bytes) {
      const std::size_t step = std::min<std::size_t>(bytes - out.size(), std::size_t{1} << 20);
      const std::size_t start = out.size();
      out.resize(start + step);
      ZSTD_outBuffer output{out.data() + start, step, 0};
      while (output.pos < output.size) {
        if (buffer_.pos == buffer_.size) {
          buffer_ = {input_.data(), std::fread(input_.data(), 1, input_.size(), file_), 0};
        }
        const std::size_t before = output.pos;
        const bool exhausted = buffer_.size == 0;
        const std::size_t result = ZSTD_decompressStream(context_, &output, &buffer_);
        if (ZSTD_isError(result) != 0)
          return invalid_input("{}: damaged: {}", name_, ZSTD_getErrorName(result));
        if (exhausted && output.pos == before)
          return invalid_input("{}: truncated: the trace ends too early", name_);
      }
    }
    return {};
  }

 private:
  std::FILE* file_;
  std::string name_;
  ZSTD_DCtx* context_ = ZSTD_createDCtx();
  std::vector<char> input_;
  ZSTD_inBuffer buffer_{nullptr, 0, 0};
};

}  // namespace

Result<void> read_trace(const std::filesystem::path& path, TraceSink& sink) {
  const OwnedFile file(std::fopen(path.c_str(), "rb"));
  if (!file) return invalid_input("{}: cannot be read: {}", path.string(), std::strerror(errno));
  char magic[sizeof trace_magic] = {};
  if (std::fread(magic, 1, sizeof magic, file.get()) != sizeof magic ||
      std::memcmp(magic, trace_magic, sizeof magic) != 0) {
    return invalid_input("{}: not a trace of Demarc (it does not start with DMRCTRC1)",
                         path.string());
  }
  TraceStream stream(file.get(), path.string());
  std::unique_ptr<TraceCoder> coder;
  std::string record;
  std::vector<std::uint64_t> words;
  for (;;) {
    DEMARC_CHECK(stream.read(5, record));
    const auto tag = static_cast<TraceTag>(record[0]);
    DEMARC_CHECK(stream.read(get_u32(record.data() + 1), record));
    switch (tag) {
      case TraceTag::kernel: {
        DEMARC_TRY(const TraceHeader header, read_header(record, path.string() + ": header"));
        coder = std::make_unique<TraceCoder>(header.instructions.size());
        DEMARC_CHECK(sink.begin_kernel(header));
        break;
      }
      case TraceTag::chunk:
      case TraceTag::last_chunk: {
        if (record.size() < 4 || !coder)
          return invalid_input("{}: damaged: a chunk without its kernel", path.string());
        words.clear();
        if (auto decoded = coder->decode(std::string_view(record).substr(4), words); !decoded) {
          return invalid_input("{}: damaged chunk: {}", path.string(), decoded.error().message);
        }
        TraceChunk chunk;
        chunk.block = get_u32(record.data());
        chunk.last = tag == TraceTag::last_chunk;
        chunk.words = words;
        DEMARC_CHECK(sink.consume(chunk));
        break;
      }
      case TraceTag::kernel_end:
        DEMARC_CHECK(sink.end_kernel());
        break;
      case TraceTag::end:
        return sink.end();
      default:
        return invalid_input("{}: damaged: record of kind {}", path.string(),
                             static_cast<unsigned>(tag));
    }
  }
}

}  // namespace demarc::emulate
