// Kernels that read textures and write surfaces: what the maps have of them, and what is said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "written_kernel.hpp"

namespace demarc::locality {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* parameters = ".param .u64 words, .param .u64 image";

// %r1 and %r2: the numbers of the thread and of its block. %rd2: the thread's word, which all
// blocks read. %rd3: the handle.
ptx::Module image_module(const std::string& body) {
  return module_of(R"(
ld.param.u64 %rd1, [words];
ld.param.u64 %rd3, [image];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd2, %rd1, %rd2;
ld.global.f32 %f9, [%rd2];
)" + body,
                   parameters);
}

// Three blocks of four threads. The texels are 16 words of 4 bytes.
gpu::Launch image_launch(const std::string& image) {
  auto launch = gpu::parse_launch_json(R"({"schema": "demarc.launch/1", "ptx": "k.ptx",
    "buffers": [{"name": "words", "bytes": 16}, {"name": "texels", "bytes": 64}],
    "launches": [{"kernel": "k", "grid": 3, "block": 4, "args": ["buf:words", )" +
                                           image + "]}]}",
                                       "image.json");
  EXPECT_TRUE(launch) << launch.error().message;
  return *launch;
}
const std::string plane =
    R"({"texture": {"buffer": "texels", "shape": "2d", "type": "f32", "size": [4, 4]}})";
const std::string surface =
    R"({"surface": {"buffer": "texels", "shape": "2d", "type": "f32", "size": [4, 4]}})";
const std::string row =
    R"({"texture": {"buffer": "texels", "shape": "linear", "type": "f32", "size": [16]}})";

// A block reads the row of its number and the next one.
constexpr const char* two_rows = R"(
add.u32 %r3, %r2, 1;
tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd3, {%r1, %r2}];
tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd3, {%r1, %r3}];
)";

std::vector<std::string> texel_notes(const Analysis& analysis) {
  std::vector<std::string> found;
  for (const std::string& note : analysis.notes)
    if (note.find("each texel counts as a request") != std::string::npos) found.push_back(note);
  return found;
}

TEST(Textures, that_are_read_are_in_the_maps_beside_loads) {
  Options options;
  options.count = Count::distinct;
  const Analysis analysis = analysed(image_module(two_rows), image_launch(plane), options);
  EXPECT_EQ(analysis.method, Method::mixed);
  EXPECT_EQ(analysis.left_out, 0U);
  ASSERT_EQ(analysis.all.accesses.size(), 3U);
  EXPECT_EQ(analysis.all.accesses[0].source, Source::symbolic);
  for (const std::size_t fetch : {1U, 2U}) {
    const Access& access = analysis.all.accesses[fetch];
    EXPECT_THAT(access.instruction, HasSubstr("tex.2d.v4.f32.s32"));
    EXPECT_EQ(access.kind, AccessKind::load);
    EXPECT_EQ(access.source, Source::emulated);
    EXPECT_EQ(access.executed, 12U);
    EXPECT_EQ(access.requests, 3U);
  }
  // All blocks share the four words, and neighbours a row of four texels.
  ASSERT_EQ(analysis.inter.map.cells.size(), 3U);
  EXPECT_EQ(analysis.inter.map.cells[0].value, 8U);
  EXPECT_EQ(analysis.inter.map.cells[1].value, 4U);
  EXPECT_EQ(analysis.inter.map.cells[2].value, 8U);
  EXPECT_EQ(analysis.inter.places, 20U);
}

TEST(Textures, have_a_note_by_line_for_what_a_card_does_otherwise) {
  const Analysis analysis = analysed(image_module(two_rows), image_launch(plane));
  EXPECT_THAT(texel_notes(analysis),
              ElementsAre(HasSubstr("its sectors, lines, pages and hit rates differ: k.ptx:20: "
                                    "tex.2d.v4.f32.s32"),
                          HasSubstr(": k.ptx:21: tex.2d.v4.f32.s32")));
  // Linear memory lies on a card as it does here.
  const Analysis linear = analysed(
      image_module("tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd3, {%r1}];\n"), image_launch(row));
  EXPECT_EQ(linear.all.accesses.size(), 2U);
  EXPECT_THAT(texel_notes(linear), testing::IsEmpty());
}

TEST(Textures, get_advice_about_their_sectors_from_linear_memory_alone) {
  // Lanes are 16 bytes apart.
  const std::string down = "shl.b32 %r3, %r1, 2;\n";
  const Analysis linear =
      analysed(image_module(down + "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd3, {%r3}];\n"),
               image_launch(row));
  EXPECT_THAT(linear.advice, Contains(HasSubstr("coalesces worst")));
  const Analysis column =
      analysed(image_module("tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd3, {%r2, %r1}];\n"),
               image_launch(plane));
  ASSERT_EQ(column.all.accesses.size(), 2U);
  EXPECT_EQ(column.all.accesses[1].sectors_per_request, linear.all.accesses[1].sectors_per_request);
  EXPECT_THAT(column.advice, Not(Contains(HasSubstr("coalesces worst"))));
}

TEST(Textures, that_are_filtered_count_each_texel) {
  const std::string filtered =
      R"({"texture": {"buffer": "texels", "shape": "2d", "type": "f32", "size": [4, 4],
          "filter": "linear"}})";
  const Analysis analysis =
      analysed(image_module("mov.f32 %f1, 0f3F800000;\n"
                            "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd3, {%f1, %f1}];\n"),
               image_launch(filtered));
  ASSERT_EQ(analysis.all.accesses.size(), 2U);
  EXPECT_EQ(analysis.all.accesses[1].executed, 4U * 12);
  EXPECT_EQ(analysis.inter.places, 4U + 4);
  EXPECT_THAT(texel_notes(analysis), ElementsAre(testing::_));
}

TEST(Textures, and_surfaces_are_loads_stores_and_atomics) {
  const ptx::Module module = image_module(R"(
shl.b32 %r3, %r1, 2;
suld.b.2d.b32.trap {%r4}, [%rd3, {%r3, %r2}];
sust.b.2d.b32.trap [%rd3, {%r3, %r2}], {%r4};
sured.b.add.2d.u32.trap [%rd3, {%r3, %r2}], %r4;
)");
  Options options;
  options.kind = AccessKind::store;
  const Analysis analysis = analysed(module, image_launch(surface), options);
  ASSERT_EQ(analysis.all.accesses.size(), 4U);
  EXPECT_EQ(analysis.all.accesses[1].kind, AccessKind::load);
  EXPECT_EQ(analysis.all.accesses[2].kind, AccessKind::store);
  EXPECT_EQ(analysis.all.accesses[3].kind, AccessKind::atomic);
  EXPECT_EQ(analysis.inter.places, 12U);
  EXPECT_EQ(texel_notes(analysis).size(), 3U);
}

TEST(Textures, that_a_called_function_reads_have_a_note_too) {
  const ptx::ParseResult parsed = ptx::parse(R"(.version 8.0
.target sm_80
.address_size 64
.func f(.param .b64 image)
{
.reg .b64 %rd<2>;
.reg .b32 %r<2>;
.reg .f32 %f<5>;
ld.param.u64 %rd1, [image];
mov.u32 %r1, %tid.x;
tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1, %r1}];
ret;
}
.visible .entry k(.param .u64 words, .param .u64 image)
{
.reg .b64 %rd<2>;
ld.param.u64 %rd1, [image];
{
.param .b64 to;
st.param.b64 [to], %rd1;
call.uni f, (to);
}
ret;
}
)",
                                             "k.ptx");
  ASSERT_TRUE(parsed.diagnostics.ok());
  const Analysis analysis = analysed(parsed.module, image_launch(plane));
  EXPECT_EQ(analysis.method, Method::emulated);
  EXPECT_THAT(texel_notes(analysis), ElementsAre(HasSubstr(": k.ptx:11: tex.2d.v4.f32.s32")));
}

TEST(Textures, in_forms_that_the_emulator_lacks_are_named_and_left_out_of_the_maps) {
  const ptx::Module module =
      image_module("tex.level.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd3, {%f9, %f9}], %f9;\n");
  const Analysis analysis = analysed(module, image_launch(plane));
  EXPECT_EQ(analysis.left_out, 1U);
  EXPECT_THAT(analysis.notes,
              Contains(HasSubstr("left out, may touch global memory and is not covered: k.ptx:18: "
                                 "tex.level.2d.v4.f32.f32")));
  ASSERT_EQ(analysis.all.accesses.size(), 1U);
  EXPECT_EQ(analysis.inter.places, 4U);
}

TEST(Textures, have_no_closed_forms) {
  Options options;
  options.force = Force::symbolic;
  const auto refused = analyse(image_module(two_rows), image_launch(plane), options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::invalid_input);
  EXPECT_THAT(refused.error().message,
              HasSubstr("k.ptx:20: tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd3, {%r1, %r2}];: "
                        "may touch global memory and has no closed form"));
}

TEST(Textures, whose_handle_the_launch_does_not_give_are_refused_by_line) {
  const auto refused = analyse(image_module(two_rows), launch_of("3", "4", "buf:16,u64:4660"), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(refused.error().message,
              testing::AllOf(HasSubstr("does not run to its end: "), HasSubstr("k.ptx:20"),
                             HasSubstr("0x1234 is not a handle of a texture of the launch file")));
}

}  // namespace
}  // namespace demarc::locality
