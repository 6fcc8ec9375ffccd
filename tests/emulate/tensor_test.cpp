// Copies of a box of a tensor, between the tensor and shared memory.
#include <gmock/gmock.h>

#include <random>

#include "harness.hpp"

namespace demarc::emulate {
namespace {

using gpu::TensorMap;
using gpu::TensorType;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint32_t tile_bytes = 16384;
constexpr std::uint32_t tensor_bytes = 1 << 16;
constexpr std::uint32_t untouched_word = 0xeeeeeeee;
constexpr std::uint32_t own_word = 0x10000000;  // + its number: what is stored

// Where a box is, and where it goes.
struct Box {
  std::vector<std::int32_t> corner;
  std::uint32_t place = 0;  // in shared memory
};

// Thread 0 makes the copy that `body` says: %r2 is the barrier, %r3 the box's place in shared
// memory and %rd3 the map. Before it each word of the tile is `word`, behind it the tile goes to
// `out`.
std::string tensor_kernel(const std::string& body, const std::string& word, std::uint32_t place) {
  return fmt::format(R"(.version 8.3
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .align 64 .b8 map[128])
{{
.reg .pred %p<9>;
.reg .b16 %h<4>;
.reg .b32 %r<30>;
.reg .b64 %rd<9>;
.shared .align 1024 .b8 tile[{0}];
.shared .align 8 .b64 bar;
ld.param.u64 %rd1, [out];
mov.b64 %rd3, map;
cvta.param.u64 %rd3, %rd3;
mov.u32 %r1, %tid.x;
mov.u32 %r2, bar;
mov.u32 %r4, tile;
add.u32 %r3, %r4, {3};
mov.u32 %r5, %r1;
FILL:
mad.lo.u32 %r6, %r5, 4, %r4;
{2}
st.shared.u32 [%r6], %r7;
add.u32 %r5, %r5, 32;
setp.lt.u32 %p1, %r5, {1};
@%p1 bra FILL;
setp.ne.u32 %p1, %r1, 0;
@!%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
bar.sync 0;
@%p1 bra DONE;
{4}
DONE:
bar.sync 0;
mov.u32 %r5, %r1;
COPY:
mad.lo.u32 %r6, %r5, 4, %r4;
ld.shared.u32 %r7, [%r6];
mad.wide.u32 %rd2, %r5, 4, %rd1;
st.global.u32 [%rd2], %r7;
add.u32 %r5, %r5, 32;
setp.lt.u32 %p1, %r5, {1};
@%p1 bra COPY;
ret;
}}
)",
                     tile_bytes, tile_bytes / 4, word, place, body);
}

std::string coordinates_of(const Box& box) {
  std::string text;
  for (const std::int32_t at : box.corner) text += (text.empty() ? "" : ", ") + std::to_string(at);
  return "{" + text + "}";
}

std::string load_of(const Box& box, std::uint32_t bytes) {
  return tensor_kernel(fmt::format(R"(
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], {};
cp.async.bulk.tensor.{}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd3, {}], [%r2];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
@!%p2 bra WAIT;)",
                                   bytes, box.corner.size(), coordinates_of(box)),
                       fmt::format("mov.u32 %r7, {};", untouched_word), box.place);
}

// `operation`: cp.async.bulk.tensor, or cp.reduce.async.bulk.tensor with one of its own.
std::string store_of(const Box& box, const std::string& operation = "") {
  return tensor_kernel(
      fmt::format("cp.{}async.bulk.tensor.{}d.global.shared::cta{}.tile.bulk_group [%rd3, {}], "
                  "[%r3];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;",
                  operation.empty() ? "" : "reduce.", box.corner.size(), operation,
                  coordinates_of(box)),
      fmt::format("add.u32 %r7, %r5, {};", own_word), box.place);
}

// The tensor's buffer has the words 0, 1, 2, …
gpu::Launch launch_with(const TensorMap& map) {
  gpu::Launch launch = test::launch_of(1, 32, tile_bytes);
  gpu::Buffer tensor;
  tensor.name = "tensor";
  tensor.bytes = tensor_bytes;
  tensor.output = true;
  tensor.fill.kind = gpu::FillKind::iota;
  launch.buffers.push_back(tensor);
  TensorMap placed = map;
  placed.buffer = 1;
  launch.kernels[0].arguments.emplace_back(placed);
  return launch;
}

std::vector<std::uint8_t> raw_bytes(const std::vector<std::byte>& buffer) {
  std::vector<std::uint8_t> bytes(buffer.size());
  std::memcpy(bytes.data(), buffer.data(), bytes.size());
  return bytes;
}

std::uint32_t tile_word(const std::vector<std::uint8_t>& bytes, std::size_t at) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

struct Contents {
  std::vector<std::uint8_t> tile;
  std::vector<std::uint8_t> tensor;
};

Contents run_tensor(const std::string& text, const TensorMap& map) {
  const auto outcome = test::run_text(text, launch_with(map));
  EXPECT_TRUE(outcome) << outcome.error().message << text;
  if (!outcome) return {};
  for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
  return {raw_bytes(outcome->buffers[0]), raw_bytes(outcome->buffers[1])};
}

Finding tensor_finding(const std::string& text, const TensorMap& map) {
  const auto outcome = test::run_text(text, launch_with(map));
  EXPECT_TRUE(outcome) << outcome.error().message;
  if (outcome && !outcome->findings.empty()) return outcome->findings[0];
  ADD_FAILURE() << "no finding";
  return {};
}

// Words of rows of 256 bytes: dims, box, swizzle.
TensorMap words_map(std::uint64_t width, std::uint32_t box0, std::uint32_t box1,
                    std::uint32_t swizzle = 0) {
  TensorMap map;
  map.type = TensorType::u32;
  map.dims = {width, 64};
  map.strides = {256};
  map.box = {box0, box1};
  map.element_strides = {1, 1};
  map.swizzled_bytes = swizzle;
  return map;
}

// The first word of each 16 bytes of the tile that were written, as "place:word".
std::string chunks_written(const std::vector<std::uint8_t>& tile) {
  std::string text;
  for (std::size_t at = 0; at < tile.size(); at += 16) {
    bool any = false;
    for (std::size_t i = 0; i < 16; i += 4) any = any || tile_word(tile, at + i) != untouched_word;
    if (any) text += fmt::format("{}{}:{:x}", text.empty() ? "" : " ", at, tile_word(tile, at));
  }
  return text;
}

std::string loaded(const TensorMap& map, const Box& box, std::uint32_t bytes) {
  return chunks_written(run_tensor(load_of(box, bytes), map).tile);
}

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
              HasSubstr("a reduction that elements of u8 do not have"));
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

// Takes each element of the box, as the manual and the driver describe a map: its row's and its own
// position, its byte in the tensor's buffer and its byte in the tile.
struct BoxElement {
  bool row_inside;
  std::int64_t column;  // of the tensor
  std::uint64_t in_tensor;
  std::uint32_t in_tile;
};

template <class Take>
void for_each_element(const TensorMap& map, const Box& box, Take take) {
  const std::uint32_t bytes = size_of(map.type);
  const std::size_t dimensions = map.dims.size();
  std::vector<std::uint32_t> at(dimensions, 0);
  const std::uint32_t pitch = map.swizzled_bytes != 0 ? map.swizzled_bytes : map.box[0] * bytes;
  for (std::uint32_t row = 0;; ++row) {
    bool row_inside = true;
    std::uint64_t start = map.offset;
    for (std::size_t i = 1; i < dimensions; ++i) {
      const std::int64_t position = box.corner[i] + std::int64_t{at[i]};
      row_inside = row_inside && position >= 0 && position < static_cast<std::int64_t>(map.dims[i]);
      start += static_cast<std::uint64_t>(position) * map.strides[i - 1];
    }
    for (std::uint32_t column = 0; column < map.box[0]; ++column) {
      const std::int64_t position = box.corner[0] + std::int64_t{column};
      const std::uint32_t linear = box.place + row * pitch + column * bytes;
      // 16-byte chunks of a line of 128 bytes change places with the line's number.
      const std::uint32_t turn =
          map.swizzled_bytes == 0 ? 0 : linear / 128 % (map.swizzled_bytes / 16);
      take(BoxElement{row_inside, position, start + static_cast<std::uint64_t>(position) * bytes,
                      linear / 128 * 128 + ((linear % 128 / 16) ^ turn) * 16 + linear % 16});
    }
    std::size_t i = 1;
    for (; i < dimensions; ++i) {
      at[i] += map.element_strides[i];
      if (at[i] < map.box[i]) break;
      at[i] = 0;
    }
    if (i >= dimensions) return;
  }
}

std::uint8_t byte_of(std::uint64_t first_word, std::uint64_t at) {
  return static_cast<std::uint8_t>((first_word + at / 4) >> (8 * (at % 4)));
}

std::vector<std::uint8_t> expected_tile(const TensorMap& map, const Box& box) {
  std::vector<std::uint8_t> tile(tile_bytes, 0xee);
  for_each_element(map, box, [&](const BoxElement& one) {
    const bool inside =
        one.row_inside && one.column >= 0 && one.column < static_cast<std::int64_t>(map.dims[0]);
    for (std::uint32_t byte = 0; byte < size_of(map.type); ++byte) {
      const std::uint8_t nan = byte % 2 == 0 ? 0xf7 : 0x7f;
      const std::uint8_t filler = map.fill_nan ? nan : std::uint8_t{0};
      tile[one.in_tile + byte] = inside ? byte_of(0, one.in_tensor + byte) : filler;
    }
  });
  return tile;
}

// Sixteen bytes whose first element lies in the tensor are written, whatever is behind it.
std::vector<std::uint8_t> expected_tensor(const TensorMap& map, const Box& box) {
  std::vector<std::uint8_t> tensor(tensor_bytes);
  for (std::size_t at = 0; at < tensor.size(); ++at) tensor[at] = byte_of(0, at);
  const auto chunk = static_cast<std::int64_t>(16 / size_of(map.type));
  for_each_element(map, box, [&](const BoxElement& one) {
    const std::int64_t first = one.column - one.column % chunk;
    if (!one.row_inside || first >= static_cast<std::int64_t>(map.dims[0])) return;
    for (std::uint32_t byte = 0; byte < size_of(map.type); ++byte)
      tensor[one.in_tensor + byte] = byte_of(own_word, one.in_tile + byte);
  });
  return tensor;
}

struct RandomBox {
  TensorMap map;
  Box box;
  std::uint32_t bytes = 0;
};

RandomBox random_box(std::mt19937& random) {
  const auto up_to = [&](std::uint32_t most) {
    return static_cast<std::uint32_t>(random() % most);
  };
  constexpr TensorType types[] = {TensorType::u8,  TensorType::f16, TensorType::i32,
                                  TensorType::f32, TensorType::u64, TensorType::f64};
  RandomBox made;
  TensorMap& map = made.map;
  map.type = types[up_to(6)];
  map.offset = 16 * up_to(4);
  const std::uint32_t element = size_of(map.type);
  const std::uint32_t dimensions = 1 + up_to(5);
  constexpr std::uint32_t swizzles[] = {0, 32, 64, 128};
  map.swizzled_bytes = swizzles[up_to(4)];
  const std::uint32_t row =
      map.swizzled_bytes == 0 ? 16 * (1 + up_to(8)) : 16 * (1 + up_to(map.swizzled_bytes / 16));
  map.fill_nan = (map.type == TensorType::f16 || map.type == TensorType::f32) && up_to(2) == 0;
  map.dims = {1 + up_to(256 / element)};
  map.box = {row / element};
  map.element_strides = {1 + up_to(3)};
  made.box.corner = {(static_cast<std::int32_t>(up_to(12)) - 4) *
                     static_cast<std::int32_t>(16 / element)};
  made.box.place = 128 * up_to(8);
  std::uint64_t stride = 256;
  std::uint32_t rows = 1;
  for (std::uint32_t i = 1; i < dimensions; ++i) {
    map.dims.push_back(1 + up_to(i < 4 ? 4 : 3));
    map.strides.push_back(stride);
    stride *= 4;
    map.box.push_back(1 + up_to(i < 3 ? 5 : 2));
    map.element_strides.push_back(1 + up_to(3));
    made.box.corner.push_back(static_cast<std::int32_t>(up_to(8)) - 3);
    rows *= (map.box[i] + map.element_strides[i] - 1) / map.element_strides[i];
  }
  made.bytes = rows * row;
  return made;
}

TEST(TensorCopies, put_each_element_where_the_map_says) {
  std::mt19937 random(7);
  for (int i = 0; i < 150; ++i) {
    const RandomBox made = random_box(random);
    const auto tile = run_tensor(load_of(made.box, made.bytes), made.map).tile;
    ASSERT_EQ(tile, expected_tile(made.map, made.box)) << i << load_of(made.box, made.bytes);
  }
}

TEST(TensorCopies, take_each_element_where_the_map_says) {
  std::mt19937 random(8);
  for (int i = 0; i < 150; ++i) {
    RandomBox made = random_box(random);
    for (std::int32_t& at : made.box.corner) at = std::max(at, 0);
    const auto tensor = run_tensor(store_of(made.box), made.map).tensor;
    ASSERT_EQ(tensor, expected_tensor(made.map, made.box)) << i << store_of(made.box);
  }
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
