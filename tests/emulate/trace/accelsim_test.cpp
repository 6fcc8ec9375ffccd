// Accel-Sim's traces: examples/accelsim holds an application's files, tests/emulate/accelsim what
// they say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "demarc/emulate/trace.hpp"
#include "paths.hpp"

namespace demarc::emulate {
namespace {

using testing::HasSubstr;

std::string three(const std::array<std::uint32_t, 3>& sizes) {
  return fmt::format("{},{},{}", sizes[0], sizes[1], sizes[2]);
}

// A trace as text, an affine access as base + stride.
class EventListing final : public TraceSink {
 public:
  Result<void> begin_kernel(const TraceHeader& header) override {
    text += fmt::format("kernel {}, grid {}, block {}, {} bytes shared\n", header.kernel,
                        three(header.grid), three(header.block), header.shared_bytes);
    for (std::size_t i = 0; i < header.instructions.size(); ++i) {
      const TraceInstruction& instruction = header.instructions[i];
      text += fmt::format(" {}: {}", i, instruction.text);
      if (instruction.bytes != 0) {
        text += fmt::format(" ({} {} {})", to_string(instruction.kind),
                            to_string(instruction.space), instruction.bytes);
      }
      if (instruction.line != 0) text += fmt::format(" line {}", instruction.line);
      text += '\n';
    }
    return {};
  }
  Result<void> consume(const TraceChunk& chunk) override {
    std::uint32_t warp = 0;
    text += fmt::format("block {}\n", chunk.block);
    visit_events(chunk, warp, *this);
    return {};
  }
  void run(const RunEvent& event) {
    EXPECT_EQ(event.count, 1U);
    text += fmt::format("warp {}: {} {:08x}\n", event.warp, event.first, event.mask);
  }
  void access(const AccessEvent& event) {
    text.pop_back();
    text += fmt::format(" {}", to_string(event.space));
    const auto first = static_cast<unsigned>(std::countr_zero(event.mask));
    if (event.affine) text += fmt::format(" {:#x} + {}\n", event.addresses[first], event.stride);
    if (event.affine) return;
    for (unsigned lane = 0; lane < 32; ++lane) {
      if ((event.mask >> lane & 1U) != 0) text += fmt::format(" {:#x}", event.addresses[lane]);
    }
    text += '\n';
  }

  std::string text;
};

TEST(AccelsimTraces, an_application_becomes_the_events_that_are_kept_beside_it) {
  EventListing listing;
  const auto imported =
      read_accelsim_trace(demarc::test::source_dir() / "examples/accelsim/kernelslist.g", listing);
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(listing.text,
            read_file(demarc::test::source_dir() / "tests/emulate/accelsim/events.txt").value());
  ASSERT_EQ(imported->size(), 2U);
  EXPECT_EQ((*imported)[0].kernel, "_Z4axpyPfS_");
  EXPECT_EQ((*imported)[0].blocks, 2U);
  EXPECT_EQ((*imported)[0].warps, 4U);
  EXPECT_EQ((*imported)[0].warp_instructions, 11U);
  EXPECT_EQ((*imported)[0].memory_accesses, 4U);
}

TEST(AccelsimTraces, an_imported_trace_comes_back_from_our_own_file) {
  const auto source = demarc::test::source_dir() / "examples" / "accelsim" / "kernelslist.g";
  const auto path = demarc::test::fresh_folder("accelsim_import") / "ours.trace";
  EventListing direct;
  EventListing back;
  ASSERT_TRUE(read_accelsim_trace(source, direct));
  TraceFileWriter writer(path);
  ASSERT_TRUE(read_accelsim_trace(source, writer));
  ASSERT_TRUE(read_trace(path, back));
  EXPECT_EQ(back.text, direct.text);
}

constexpr const char* whole_kernel =
    "-kernel name = k\n-grid dim = (2,1,1)\n-block dim = (32,1,1)\n#BEGIN_TB\nthread block = "
    "0,0,0\nwarp = 0\ninsts = 1\n0000 00000003 1 R1 LDG.E 1 R2 4 0 0x10 0x20\n#END_TB\n"
    "#BEGIN_TB\nthread block = 1,0,0\nwarp = 0\ninsts = 0\n#END_TB\n";

std::string listing_of(const std::string& text) {
  const auto path = demarc::test::fresh_folder("accelsim_listing") / "k";
  EXPECT_TRUE(write_file(path, text));
  EventListing listing;
  const auto done = read_accelsim_trace(path, listing);
  EXPECT_TRUE(done) << done.error().message;
  return listing.text;
}

TEST(AccelsimTraces, immediates_of_newer_tracers_behind_an_instruction_change_nothing) {
  // Version 5 writes one, version 6 two and what the registers became.
  const std::string plain = "1 R1 LDG.E 1 R2 4 0 0x10 0x20";
  for (const char* behind : {" 0", " 528 0 NoVal", " 0 0 Val 2 0x1 0x2"}) {
    std::string text = whole_kernel;
    text.insert(text.find(plain) + plain.size(), behind);
    text.insert(text.find("#BEGIN_TB"),
                "-nregs = 21955\n-binary version = 0\n-accelsim tracer version = 6\n"
                "-enable lineinfo = 0\n#traces format = [line_num] PC mask\n");
    EXPECT_EQ(listing_of(text), listing_of(whole_kernel)) << behind;
  }
}

// The message for whole_kernel with `part` replaced.
std::string refused_with(const std::string& part, const std::string& replacement) {
  std::string text = whole_kernel;
  const auto at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  text.replace(at, part.size(), replacement);
  const auto path = demarc::test::fresh_folder("accelsim_wrong") / "k";
  EXPECT_TRUE(write_file(path, text));
  TraceRecorder sink;
  const auto done = read_accelsim_trace(path, sink);
  EXPECT_FALSE(done) << text;
  return done ? "" : done.error().message;
}

TEST(AccelsimTraces, what_is_malformed_is_refused_with_file_and_line) {
  const auto path = demarc::test::fresh_folder("accelsim_right") / "k";
  ASSERT_TRUE(write_file(path, whole_kernel));
  TraceRecorder sink;
  ASSERT_TRUE(read_accelsim_trace(path, sink));
  struct Case {
    const char *part, *replacement, *line, *what;
  };
  const Case cases[] = {
      {"-kernel name = k", "-kernel id = 1", ":4: ", "no '-kernel name"},
      {"-grid dim = (2,1,1)", "", ":4: ", "no '-grid dim"},
      {"-grid dim = (2,1,1)", "-grid dim = (2,0,1)", ":2: ", "'-grid dim' must be"},
      {"(2,1,1)", "(4294967295,4294967295,4294967295)", ":2: ", "'-grid dim' must be"},
      {"(32,1,1)", "(32,33,1)", ":3: ", "'-block dim' must be"},
      {"thread block = 0,0,0\n", "", ":5: ", "a warp before 'thread block"},
      {"thread block = 1,0,0", "thread block = 2,0,0", ":11: ", "outside of the grid"},
      {"thread block = 0,0,0", "thread block = 1,0,0", ":5: ", "where number 0 must stand"},
      {"warp = 0", "warp = 1", ":6: ", "warp 1 of a block of 1 warps"},
      {"insts = 1", "insts = 7", ":9: ", "'insts = 7'"},
      {"0000 00000003", "0000 1ffffffff", ":8: ", "lacks an active mask"},
      {"1 R2 4 0", "9 R2 4 0", ":8: ", "lacks the registers read"},
      {"0x10 0x20", "0x10", ":8: ", "addresses of its active lanes"},
      {"4 0 0x10", "4 3 0x10", ":8: ", "addresses of its active lanes"},
      {"#BEGIN_TB\n", "", ":4: ", "post-traces-processing"},
      {"#END_TB\n#BEGIN", "#BEGIN", ":9: ", "#END_TB is missing"},
      {"insts = 0\n#END_TB\n", "insts = 0\n", ":13: ", "#END_TB is missing"},
      {"#BEGIN_TB\nthread block = 1,0,0\nwarp = 0\ninsts = 0\n#END_TB\n", "",
       ":9: ", "1 of the 2 blocks"},
      {"insts = 0\n#END_TB\n", "insts = 0\n#END_TB\n-kernel name = j\n", ":15: ", "one kernel"},
      {"-kernel name", "-accelsim tracer version = 2\n-kernel name", ":1: ", "tracer version 2"},
      {whole_kernel, "", "/k", "the trace ends before any"},
      {whole_kernel,
       "\xfd"
       "7zXZ",
       "/k", "unpack it first: xz -dk "},
      {whole_kernel, "kernel-9.traceg", "/k:1: ", "kernel-9.traceg does not exist"},
      {whole_kernel, "MemcpyHtoD,0x1,4\nnothing", "/k:2: ", "a list of kernels has lines"},
      {whole_kernel, "MemcpyHtoD,0x1,4", "/k: ", "no kernel in the list"},
  };
  for (const Case& wrong : cases) {
    const std::string message = refused_with(wrong.part, wrong.replacement);
    EXPECT_THAT(message, HasSubstr(wrong.line)) << wrong.what;
    EXPECT_THAT(message, HasSubstr(wrong.what));
  }
  const std::string endless = refused_with("R1 LDG", std::string(std::size_t{3} << 20U, 'R'));
  EXPECT_THAT(endless, HasSubstr(":8: a line of more than"));
}

TEST(AccelsimTraces, a_folder_and_a_file_that_is_not_there_are_refused) {
  TraceRecorder sink;
  const auto folder = demarc::test::fresh_folder("accelsim_folder");
  const auto no_file = read_accelsim_trace(folder, sink);
  ASSERT_FALSE(no_file);
  EXPECT_THAT(no_file.error().message, HasSubstr("must be a file"));
  const auto missing = read_accelsim_trace(folder / "none", sink);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("none"));
}

}  // namespace
}  // namespace demarc::emulate
