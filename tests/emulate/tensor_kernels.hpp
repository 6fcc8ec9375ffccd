// Kernels that copy a box between a tensor and shared memory, and what they leave.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "harness.hpp"

namespace demarc::emulate::test {

inline constexpr std::uint32_t tile_bytes = 16384;
inline constexpr std::uint32_t tensor_bytes = 1 << 16;
inline constexpr std::uint32_t untouched_word = 0xeeeeeeee;
inline constexpr std::uint32_t own_word = 0x10000000;  // + its number: what is stored

// Where a box is, and where it goes.
struct Box {
  std::vector<std::int32_t> corner;
  std::uint32_t place = 0;  // in shared memory
};

// Thread 0 makes the copy that `body` says: %r2 is the barrier, %r3 the box's place in shared
// memory and %rd3 the map. Before it each word of the tile is `word`, behind it the tile goes to
// `out`.
inline std::string tensor_kernel(const std::string& body, const std::string& word,
                                 std::uint32_t place) {
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

inline std::string coordinates_of(const Box& box) {
  std::string text;
  for (const std::int32_t at : box.corner) text += (text.empty() ? "" : ", ") + std::to_string(at);
  return "{" + text + "}";
}

inline std::string load_of(const Box& box, std::uint32_t bytes) {
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
inline std::string store_of(const Box& box, const std::string& operation = "") {
  return tensor_kernel(
      fmt::format("cp.{}async.bulk.tensor.{}d.global.shared::cta{}.tile.bulk_group [%rd3, {}], "
                  "[%r3];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;",
                  operation.empty() ? "" : "reduce.", box.corner.size(), operation,
                  coordinates_of(box)),
      fmt::format("add.u32 %r7, %r5, {};", own_word), box.place);
}

// The tensor's buffer has the words 0, 1, 2, …
inline gpu::Launch launch_with(const gpu::TensorMap& map) {
  gpu::Launch launch = launch_of(1, 32, tile_bytes);
  gpu::Buffer tensor;
  tensor.name = "tensor";
  tensor.bytes = tensor_bytes;
  tensor.output = true;
  tensor.fill.kind = gpu::FillKind::iota;
  launch.buffers.push_back(tensor);
  gpu::TensorMap placed = map;
  placed.buffer = 1;
  launch.kernels[0].arguments.emplace_back(placed);
  return launch;
}

inline std::vector<std::uint8_t> raw_bytes(const std::vector<std::byte>& buffer) {
  std::vector<std::uint8_t> bytes(buffer.size());
  std::memcpy(bytes.data(), buffer.data(), bytes.size());
  return bytes;
}

inline std::uint32_t tile_word(const std::vector<std::uint8_t>& bytes, std::size_t at) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

struct Contents {
  std::vector<std::uint8_t> tile;
  std::vector<std::uint8_t> tensor;
};

inline Contents run_tensor(const std::string& text, const gpu::TensorMap& map) {
  const auto outcome = run_text(text, launch_with(map));
  EXPECT_TRUE(outcome) << outcome.error().message << text;
  if (!outcome) return {};
  for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
  return {raw_bytes(outcome->buffers[0]), raw_bytes(outcome->buffers[1])};
}

inline Finding tensor_finding(const std::string& text, const gpu::TensorMap& map) {
  const auto outcome = run_text(text, launch_with(map));
  EXPECT_TRUE(outcome) << outcome.error().message;
  if (outcome && !outcome->findings.empty()) return outcome->findings[0];
  ADD_FAILURE() << "no finding";
  return {};
}

// Words of rows of 256 bytes: dims, box, swizzle.
inline gpu::TensorMap words_map(std::uint64_t width, std::uint32_t box0, std::uint32_t box1,
                                std::uint32_t swizzle = 0) {
  gpu::TensorMap map;
  map.type = gpu::TensorType::u32;
  map.dims = {width, 64};
  map.strides = {256};
  map.box = {box0, box1};
  map.element_strides = {1, 1};
  map.swizzled_bytes = swizzle;
  return map;
}

// The first word of each 16 bytes of the tile that were written, as "place:word".
inline std::string chunks_written(const std::vector<std::uint8_t>& tile) {
  std::string text;
  for (std::size_t at = 0; at < tile.size(); at += 16) {
    bool any = false;
    for (std::size_t i = 0; i < 16; i += 4) any = any || tile_word(tile, at + i) != untouched_word;
    if (any) text += fmt::format("{}{}:{:x}", text.empty() ? "" : " ", at, tile_word(tile, at));
  }
  return text;
}

inline std::string loaded(const gpu::TensorMap& map, const Box& box, std::uint32_t bytes) {
  return chunks_written(run_tensor(load_of(box, bytes), map).tile);
}

}  // namespace demarc::emulate::test
