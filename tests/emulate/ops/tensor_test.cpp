// Copies of a box of a tensor, between the tensor and shared memory, as a card makes them.
#include <gmock/gmock.h>

#include "tensor_kernels.hpp"

namespace demarc::emulate {
namespace {

using gpu::TensorMap;
using gpu::TensorType;
using test::Box;
using test::chunks_written;
using test::launch_with;
using test::load_of;
using test::loaded;
using test::raw_bytes;
using test::run_tensor;
using test::store_of;
using test::tensor_finding;
using test::tensor_kernel;
using test::tile_bytes;
using test::tile_word;
using test::words_map;
using testing::ElementsAre;
using testing::HasSubstr;

// What an H200 wrote (driver 580.159.04, 27 November 2026).
TEST(TensorCopies, load_what_a_card_loads) {
  EXPECT_EQ(loaded(words_map(64, 8, 4), {{0, 0}}, 128),
            "0:0 16:4 32:40 48:44 64:80 80:84 96:c0 112:c4");
  EXPECT_EQ(loaded(words_map(64, 8, 2), {{64, -9}}, 64), "0:0 16:0 32:0 48:0");
  TensorMap stepped = words_map(64, 8, 5);
  stepped.element_strides = {1, 2};
  EXPECT_EQ(loaded(stepped, {{0, 3}}, 96), "0:c0 16:c4 32:140 48:144 64:1c0 80:1c4");
  stepped = words_map(64, 8, 2);
  stepped.element_strides = {2, 1};
  EXPECT_EQ(loaded(stepped, {{0, 0}}, 64), "0:0 16:4 32:40 48:44");
  stepped = words_map(64, 4, 7);
  stepped.element_strides = {1, 3};
  EXPECT_EQ(loaded(stepped, {{0, -4}}, 48), "0:0 16:0 32:80");
  EXPECT_EQ(loaded(words_map(64, 16, 4, 128), {{0, 0}}, 256),
            "0:0 16:4 32:8 48:c 128:44 144:40 160:4c 176:48 256:88 272:8c 288:80 304:84 384:cc "
            "400:c8 416:c4 432:c0");
  EXPECT_EQ(loaded(words_map(64, 4, 6, 64), {{0, 0}}, 96),
            "0:0 64:40 144:80 208:c0 288:100 352:140");
  EXPECT_EQ(loaded(words_map(64, 8, 9, 32), {{0, 0}}, 288),
            "0:0 16:4 32:40 48:44 64:80 80:84 96:c0 112:c4 128:104 144:100 160:144 176:140 192:184 "
            "208:180 224:1c4 240:1c0 256:200 272:204");
  EXPECT_EQ(
      loaded(words_map(64, 32, 2, 128), {{0, 0}, 128}, 256),
      "128:4 144:0 160:c 176:8 192:14 208:10 224:1c 240:18 256:48 272:4c 288:40 304:44 320:58 "
      "336:5c 352:50 368:54");
  EXPECT_EQ(loaded(words_map(64, 16, 4, 128), {{-4, 62}}, 256).substr(0, 76),
            "0:0 16:f80 32:f84 48:f88 128:fc0 144:0 160:fc8 176:fc4 256:0 272:0 288:0 304");
  TensorMap same = words_map(64, 4, 2);
  same.strides = {0};
  EXPECT_EQ(loaded(same, {{0, 0}}, 32), "0:0 16:0");
}

TEST(TensorCopies, end_with_the_tensor_within_16_bytes_too) {
  const auto tile = run_tensor(load_of({{8, 5}}, 64), words_map(13, 8, 2)).tile;
  std::vector<std::uint32_t> words(16);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = tile_word(tile, 4 * i);
  EXPECT_THAT(words, ElementsAre(0x148, 0x149, 0x14a, 0x14b, 0x14c, 0, 0, 0, 0x188, 0x189, 0x18a,
                                 0x18b, 0x18c, 0, 0, 0));
  TensorMap halves = words_map(29, 16, 1);
  halves.type = TensorType::f16;
  halves.fill_nan = true;
  const auto filled = run_tensor(load_of({{16, 5}}, 32), halves).tile;
  EXPECT_EQ(tile_word(filled, 20), 0x14dU);
  EXPECT_EQ(tile_word(filled, 24), 0x7ff7014eU);
  EXPECT_EQ(tile_word(filled, 28), 0x7ff77ff7U);
}

TEST(TensorCopies, fill_with_zeros_or_nan) {
  for (const TensorType type :
       {TensorType::f16, TensorType::bf16, TensorType::f32, TensorType::f64}) {
    TensorMap map = words_map(64, 32 / size_of(type), 2);
    map.type = type;
    map.dims[0] = 256 / size_of(type);
    map.fill_nan = true;
    const Box box{{-16 / static_cast<std::int32_t>(size_of(type)), 63}};
    EXPECT_EQ(loaded(map, box, 64), "0:7ff77ff7 16:fc0 32:7ff77ff7 48:7ff77ff7");
    map.fill_nan = false;
    EXPECT_EQ(loaded(map, box, 64), "0:0 16:fc0 32:0 48:0");
  }
}

// The words of the tensor that a store changed, as "index:word".
std::string changed(const std::string& text, const TensorMap& map) {
  const auto tensor = run_tensor(text, map).tensor;
  std::string words;
  for (std::uint32_t i = 0; i < tensor.size() / 4; ++i) {
    const std::uint32_t word = tile_word(tensor, std::size_t{4} * i);
    if (word != i) words += fmt::format("{}{}:{:x}", words.empty() ? "" : " ", i, word);
  }
  return words;
}

TEST(TensorCopies, store_what_a_card_stores) {
  EXPECT_EQ(changed(store_of({{60, 0}}), words_map(64, 16, 2)),
            "60:10000000 61:10000001 62:10000002 63:10000003 124:10000010 125:10000011 "
            "126:10000012 127:10000013");
  EXPECT_EQ(changed(store_of({{64, 0}}), words_map(64, 16, 2)), "");
  TensorMap stepped = words_map(64, 4, 5);
  stepped.element_strides = {1, 2};
  EXPECT_EQ(changed(store_of({{0, 3}}), stepped),
            "192:10000000 193:10000001 194:10000002 195:10000003 320:10000004 321:10000005 "
            "322:10000006 323:10000007 448:10000008 449:10000009 450:1000000a 451:1000000b");
  // What shares 16 bytes with the tensor's last element is written, too.
  EXPECT_EQ(changed(store_of({{8, 5}}), words_map(13, 8, 1)),
            "328:10000000 329:10000001 330:10000002 331:10000003 332:10000004 333:10000005 "
            "334:10000006 335:10000007");
  EXPECT_EQ(changed(store_of({{0, 62}}), words_map(64, 16, 4, 128)).substr(0, 47),
            "3968:10000000 3969:10000001 3970:10000002 3971:");
}

TEST(TensorReductions, combine_each_element_as_a_card_does) {
  EXPECT_EQ(changed(store_of({{60, 0}}, ".add"), words_map(64, 32, 3, 128)),
            "60:1000003c 61:1000003e 62:10000040 63:10000042 124:100000a0 125:100000a2 "
            "126:100000a4 127:100000a6 188:10000104 189:10000106 190:10000108 191:1000010a");
  const TensorMap four = words_map(64, 4, 1);
  EXPECT_EQ(changed(store_of({{0, 0}}, ".xor"), four),
            "0:10000000 1:10000000 2:10000000 3:10000000");
  EXPECT_EQ(changed(store_of({{0, 0}}, ".min"), four), "");
  EXPECT_EQ(changed(store_of({{0, 0}}, ".max"), four),
            "0:10000000 1:10000001 2:10000002 3:10000003");
  EXPECT_EQ(changed(store_of({{0, 0}}, ".inc"), four), "0:1 1:2 2:3 3:4");
  EXPECT_EQ(changed(store_of({{0, 0}}, ".dec"), four), "0:10000000 1:0 2:1 3:2");
  EXPECT_EQ(changed(store_of({{0, 1}}, ".and"), four), "64:0 65:1 66:2 67:3");
  EXPECT_EQ(changed(store_of({{0, 1}}, ".or"), four),
            "64:10000040 65:10000041 66:10000042 67:10000043");
  TensorMap halves = words_map(128, 16, 1);
  halves.type = TensorType::f16;
  EXPECT_EQ(changed(store_of({{0, 0}}, ".add"), halves),
            "0:10000000 1:10000002 2:10000004 3:10000006 4:10000008 5:1000000a 6:1000000c "
            "7:1000000e");
  TensorMap doubles = words_map(32, 2, 1);
  doubles.type = TensorType::f64;
  EXPECT_EQ(changed(store_of({{0, 0}}, ".add"), doubles),
            "0:10000000 1:10000001 2:10000002 3:10000003");
}

TEST(TensorReductions, that_elements_do_not_have_are_findings) {
  const auto no_reduction = [](TensorType type, const std::string& operation) {
    TensorMap map = words_map(16, 16, 1);
    map.type = type;
    if (size_of(type) == 1) map.box[0] = 32;
    const Finding finding = tensor_finding(store_of({{0, 0}}, operation), map);
    EXPECT_EQ(finding.kind, FindingKind::trap);
    return finding.detail;
  };
  EXPECT_THAT(no_reduction(TensorType::u8, ".add"),
              HasSubstr("elements of u8 do not support this reduction"));
  EXPECT_THAT(no_reduction(TensorType::i64, ".add"), HasSubstr("elements of i64"));
  EXPECT_THAT(no_reduction(TensorType::f32, ".min"), HasSubstr("elements of f32"));
  EXPECT_THAT(no_reduction(TensorType::i32, ".inc"), HasSubstr("elements of i32"));
  EXPECT_THAT(no_reduction(TensorType::i64, ".xor"), HasSubstr("elements of i64"));
  EXPECT_THAT(no_reduction(TensorType::u16, ".xor"), HasSubstr("elements of u16"));
}

TEST(TensorCopies, that_a_card_does_not_make_are_findings) {
  const TensorMap map = words_map(64, 8, 4);
  const Finding uneven = tensor_finding(load_of({{-1, 0}}, 128), map);
  EXPECT_EQ(uneven.kind, FindingKind::trap);
  EXPECT_THAT(uneven.detail, HasSubstr("begins -4 bytes into a row of the tensor, which is no"));
  EXPECT_EQ(tensor_finding(load_of({{0, 0}, 64}, 128), map).kind, FindingKind::misaligned);
  EXPECT_EQ(tensor_finding(store_of({{0, 0}, 16}), map).kind, FindingKind::misaligned);
  EXPECT_THAT(tensor_finding(store_of({{0, -1}}), map).detail,
              HasSubstr("a box that is stored begins in front of the tensor"));
  EXPECT_THAT(tensor_finding(store_of({{-4, 0}}, ".add"), map).detail,
              HasSubstr("begins in front of the tensor"));
  EXPECT_THAT(tensor_finding(load_of({{0, 0, 0}}, 128), map).detail,
              HasSubstr("a copy in 3 dimensions by a tensor map of 2"));
  TensorMap large = map;
  large.dims[1] = 257;
  const Finding behind = tensor_finding(load_of({{0, 254}}, 128), large);
  EXPECT_EQ(behind.kind, FindingKind::out_of_bounds);
}

TEST(TensorCopies, need_a_map_that_a_launch_gives) {
  gpu::Launch launch = launch_with(words_map(64, 8, 4));
  launch.kernels[0].arguments[1] = gpu::ByteArgument{std::vector<std::byte>(128)};
  const auto outcome = test::run_text(load_of({{0, 0}}, 128), launch);
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_FALSE(outcome->findings.empty());
  EXPECT_THAT(outcome->findings[0].detail, HasSubstr("there is no tensor map of a launch file at"));
}

TEST(TensorCopies, go_to_several_blocks_of_a_cluster) {
  std::string text = load_of({{0, 0}}, 128);
  const std::string copy = "cp.async.bulk.tensor.2d";
  text.replace(
      text.find(copy), copy.size(),
      "mov.u32 %r8, %cluster_ctarank;\nmov.b16 %h1, 3;\nsetp.eq.u32 %p3, %r8, 1;\n@%p3 " + copy);
  const std::string signals = "complete_tx::bytes [%r3]";
  text.replace(text.find(signals), signals.size(), "complete_tx::bytes.multicast::cluster [%r3]");
  const std::string end = "[%r2];\nWAIT:";
  text.replace(text.find(end), end.size(), "[%r2], %h1;\nWAIT:");
  // Each block's tile goes to a place of its own.
  const std::string out = "mad.wide.u32 %rd2, %r5, 4, %rd1;";
  text.replace(text.find(out), out.size(),
               "mov.u32 %r9, %ctaid.x;\nmad.lo.u32 %r9, %r9, 4096, %r5;\n"
               "mad.wide.u32 %rd2, %r9, 4, %rd1;");
  const std::string ready = "bar.sync 0;\n@%p1 bra DONE;";
  text.replace(text.find(ready), ready.size(),
               "barrier.cluster.arrive;\nbarrier.cluster.wait;\n@%p1 bra DONE;");
  gpu::Launch launch = launch_with(words_map(64, 8, 4));
  launch.buffers[0].bytes = 2 * tile_bytes;
  launch.kernels[0].grid.x = 2;
  launch.kernels[0].cluster = gpu::Dim3{2, 1, 1};
  const auto outcome = test::run_text(text, launch);
  ASSERT_TRUE(outcome) << outcome.error().message << text;
  for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
  const auto bytes = raw_bytes(outcome->buffers[0]);
  for (const std::size_t block : {0U, 1U}) {
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(block * tile_bytes);
    EXPECT_EQ(chunks_written({begin, begin + tile_bytes}),
              "0:0 16:4 32:40 48:44 64:80 80:84 96:c0 112:c4");
  }
}

TEST(TensorCopies, in_other_forms_are_refused_by_name) {
  const std::string to = "cp.async.bulk.tensor.";
  const std::string signals = ".mbarrier::complete_tx::bytes";
  for (const std::string& line :
       {to + "3d.shared::cluster.global.im2col" + signals +
            " [%r3], [%rd3, {%r1, %r1, %r1}], [%r2], {%h1};",
        to + "2d.shared::cluster.global.tile::gather4" + signals +
            " [%r3], [%rd3, {%r1, %r1, %r1, %r1, %r1}], [%r2];",
        to + "2d.shared::cluster.global.tile" + signals +
            ".cta_group::1 [%r3], [%rd3, {%r1, %r1}], [%r2];",
        to + "2d.shared::cluster.global.tile" + signals + " [%r3], [%rd3, {%r1}], [%r2];",
        to + "3d.global.shared::cta.im2col_no_offs.bulk_group [%rd3, {%r1, %r1, %r1}], [%r3];",
        std::string("cp.async.bulk.prefetch.tensor.3d.L2.global.im2col [%rd3, {%r1, %r1, %r1}], "
                    "{%h1};")}) {
    const auto outcome =
        test::run_text(tensor_kernel(line, "mov.u32 %r7, 0;", 0), launch_with(words_map(64, 8, 4)));
    ASSERT_FALSE(outcome) << line;
    EXPECT_THAT(outcome.error().message,
                HasSubstr("a form of this instruction that the emulator does not cover: " + line));
  }
}

}  // namespace
}  // namespace demarc::emulate
