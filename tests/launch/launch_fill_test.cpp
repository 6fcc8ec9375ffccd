// Tests that fills and generators make of a seed the same contents for ever.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <tuple>

#include "aes_tables.hpp"
#include "demarc/base/files.hpp"
#include "demarc/base/hash.hpp"
#include "demarc/launch/launch.hpp"
#include "paths.hpp"

namespace demarc::gpu {
namespace {

TEST(LaunchFill, buffers_that_are_together_larger_than_the_machine_are_refused_by_name) {
  const auto half = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                    static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 2;
  Launch launch;
  launch.buffers.resize(3);
  launch.buffers[0].bytes = launch.buffers[1].bytes = half;
  launch.buffers[2].bytes = 2;
  launch.buffers[2].name = "last";
  const auto memory = initial_memory(launch, default_addresses(launch));
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(memory.error().message, "buffer 'last': 2 bytes do not fit into this machine's memory");
}

Launch launch_with(Buffer buffer, std::uint64_t seed = 1) {
  Launch launch;
  launch.seed = seed;
  launch.buffers.push_back(std::move(buffer));
  return launch;
}

Buffer buffer_of(std::uint64_t bytes, ScalarType element, Fill fill) {
  return {
      .name = "b", .bytes = bytes, .element = element, .fill = std::move(fill), .output = false};
}

Fill fill_of(FillKind kind) {
  Fill fill;
  fill.kind = kind;
  return fill;
}

Fill generated_by(std::string name, std::map<std::string, std::int64_t> parameters) {
  Fill fill = fill_of(FillKind::generated);
  fill.generator = std::move(name);
  fill.parameters = std::move(parameters);
  return fill;
}

template <class T>
std::vector<T> content(const Launch& launch) {
  const auto memory = initial_memory(launch, default_addresses(launch));
  EXPECT_TRUE(memory) << memory.error().message;
  std::vector<T> values(launch.buffers[0].bytes / sizeof(T));
  std::memcpy(values.data(), memory->at(0).data(), values.size() * sizeof(T));
  return values;
}

template <class T>
std::vector<T> generated(std::uint64_t bytes, std::string name,
                         std::map<std::string, std::int64_t> parameters) {
  return content<T>(launch_with(
      buffer_of(bytes, ScalarType::u32, generated_by(std::move(name), std::move(parameters)))));
}

TEST(Fill, iota_counts_in_the_element_type_and_leaves_a_partial_element_zero) {
  const auto halves =
      content<std::uint16_t>(launch_with(buffer_of(8, ScalarType::f16, fill_of(FillKind::iota))));
  EXPECT_EQ(halves, (std::vector<std::uint16_t>{0, 0x3c00, 0x4000, 0x4200}));
  const auto bytes =
      content<std::uint8_t>(launch_with(buffer_of(6, ScalarType::u32, fill_of(FillKind::iota))));
  EXPECT_EQ(bytes, (std::vector<std::uint8_t>{0, 0, 0, 0, 0, 0}));
}

TEST(Fill, random_content_is_a_function_of_seed_and_position_and_keeps_its_range) {
  Fill fill = fill_of(FillKind::random);
  fill.low = -3;
  fill.high = 3;
  const Buffer integers = buffer_of(4000, ScalarType::i32, fill);
  const auto first = content<std::int32_t>(launch_with(integers, 5));
  EXPECT_EQ(first, content<std::int32_t>(launch_with(integers, 5)));
  EXPECT_NE(first, content<std::int32_t>(launch_with(integers, 6)));
  EXPECT_EQ(std::set<std::int32_t>(first.begin(), first.end()),
            (std::set<std::int32_t>{-3, -2, -1, 0, 1, 2, 3}));
  for (const float value : content<float>(launch_with(buffer_of(4000, ScalarType::f32, fill)))) {
    ASSERT_TRUE(value >= -3 && value <= 3) << value;
  }
  for (const double value :
       content<double>(launch_with(buffer_of(800, ScalarType::f64, fill_of(FillKind::random))))) {
    ASSERT_TRUE(value >= 0 && value < 1) << value;
  }
}

TEST(Fill, pointers_are_addresses_within_their_target) {
  Fill fill = fill_of(FillKind::pointers);
  fill.target = 1;
  fill.stride = 40;
  Launch launch = launch_with(buffer_of(16, ScalarType::u64, fill));
  launch.buffers.push_back(buffer_of(100, ScalarType::u32, {}));
  const auto addresses = default_addresses(launch);
  EXPECT_EQ(content<std::uint64_t>(launch),
            (std::vector<std::uint64_t>{addresses[1], addresses[1] + 40}));
}

TEST(Fill, zeros_can_be_left_out_however_many_there_are) {
  Fill iota = fill_of(FillKind::iota);
  Launch launch = launch_with(buffer_of(8, ScalarType::u32, iota));
  launch.buffers.push_back(buffer_of(std::uint64_t{1} << 60U, ScalarType::u32, {}));
  const auto addresses = default_addresses(launch);
  EXPECT_EQ(initial_memory(launch, addresses).error().kind, ErrorKind::missing_capability);
  const auto memory = initial_memory(launch, addresses, Zeros::left_out);
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_EQ(memory->at(0).size(), 8U);
  EXPECT_EQ(memory->at(0)[4], std::byte{1});
  EXPECT_TRUE(memory->at(1).empty());
  launch.buffers.pop_back();
  launch.buffers.push_back(buffer_of(8, ScalarType::u32, {}));
  EXPECT_EQ(initial_memory(launch, addresses)->at(1), std::vector<std::byte>(8));
}

TEST(Fill, a_file_fills_from_the_start_and_must_fit) {
  const auto path = test::fresh_folder("fill") / "data.bin";
  ASSERT_TRUE(write_file(path, "abc"));
  Fill fill = fill_of(FillKind::file);
  fill.file = path.string();
  EXPECT_EQ(content<char>(launch_with(buffer_of(4, ScalarType::u8, fill))),
            (std::vector<char>{'a', 'b', 'c', 0}));
  const Launch small = launch_with(buffer_of(2, ScalarType::u8, fill));
  EXPECT_EQ(initial_memory(small, default_addresses(small)).error().message,
            fmt::format("buffer 'b': {} holds 3 bytes, more than the buffer's 2", path.string()));
}

TEST(Generators, graph_records_tile_the_edges) {
  const auto nodes =
      generated<std::uint32_t>(8 * 101, "graph_nodes", {{"nodes", 101}, {"degree", 6}});
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < 101; ++i) {
    EXPECT_EQ(nodes[2 * i], next);
    EXPECT_GE(nodes[2 * i + 1], 1U);
    EXPECT_LE(nodes[2 * i + 1], 11U);
    next += nodes[2 * i + 1];
  }
  EXPECT_EQ(next, 606U);
  for (const std::uint32_t edge :
       generated<std::uint32_t>(4 * 606, "graph_edges", {{"nodes", 101}, {"degree", 6}})) {
    ASSERT_LT(edge, 101U);
  }
}

TEST(Generators, columns_of_a_row_rise_and_stay_inside) {
  const std::map<std::string, std::int64_t> shape{{"rows", 50}, {"columns", 40}, {"per_row", 8}};
  const auto offsets = generated<std::uint32_t>(4 * 51, "csr_offsets", shape);
  const auto columns = generated<std::uint32_t>(4 * 400, "csr_columns", shape);
  ASSERT_EQ(offsets.back(), 400U);
  for (std::size_t row = 0; row < 50; ++row) {
    for (std::size_t i = offsets[row]; i < offsets[row + 1]; ++i) {
      EXPECT_LT(columns[i], 40U);
      if (i > offsets[row]) {
        EXPECT_LT(columns[i - 1], columns[i]);
      }
    }
  }
}

TEST(Generators, the_chase_is_one_cycle_through_all_elements) {
  const auto links =
      generated<std::uint32_t>(4 * 4 * 1000, "pointer_chase", {{"elements", 1000}, {"stride", 4}});
  std::uint32_t at = 0;
  std::size_t length = 0;
  do {
    ASSERT_EQ(at % 4, 0U);
    at = links.at(at);
    ++length;
  } while (at != 0 && length <= 1000);
  EXPECT_EQ(length, 1000U);
}

TEST(Generators, mesh_neighbours_see_each_other) {
  const auto mesh =
      generated<std::int32_t>(16 * 30 * 20, "mesh_neighbours", {{"width", 30}, {"height", 20}});
  constexpr std::int32_t elements = 600;
  constexpr std::int32_t opposite[] = {1, 0, 3, 2};
  int borders = 0;
  for (std::int32_t face = 0; face < 4; ++face) {
    for (std::int32_t element = 0; element < elements; ++element) {
      const std::int32_t other = mesh[static_cast<std::size_t>(face * elements + element)];
      borders += other < 0 ? 1 : 0;
      if (other < 0) continue;
      ASSERT_EQ(mesh[static_cast<std::size_t>(opposite[face] * elements + other)], element);
    }
  }
  EXPECT_EQ(borders, 2 * (30 + 20));
}

// Digests of measured launches rest on them.
TEST(Generators, what_each_makes_of_a_seed_is_fixed_for_ever) {
  struct Made {
    const char* name;
    std::map<std::string, std::int64_t> parameters;
    std::uint64_t bytes;
    std::uint64_t digest;
  };
  const std::vector<Made> all{
      {"graph_nodes", {{"nodes", 21}, {"degree", 6}}, 8 * 21, 0x94dba6925049f647},
      {"graph_edges", {{"nodes", 21}, {"degree", 6}}, 4 * 126, 0x78e25c4588d83863},
      {"csr_offsets", {{"rows", 20}, {"columns", 15}, {"per_row", 5}}, 4 * 21, 0xa3fdb037308cd8d3},
      {"csr_columns", {{"rows", 20}, {"columns", 15}, {"per_row", 5}}, 4 * 100, 0xcb2782280652d09b},
      {"first_marked", {{"elements", 5}}, 5, 0xd1dd927ed529f768},
      {"permutation", {{"elements", 100}}, 400, 0x95111909253ca24e},
      {"pointer_chase", {{"elements", 100}, {"stride", 3}}, 1200, 0xdb7397df5046e3},
      {"mesh_neighbours", {{"width", 13}, {"height", 11}}, 16 * 143, 0x2378693a8f6e2a2b},
      {"dominant_matrix", {{"n", 7}}, 4 * 49, 0xbda9b841954e5ff6},
      {"flow_state", {{"elements", 9}}, 4 * 45, 0x23508c11cdd32f7f},
      {"aes_sbox", {}, 256, 0x3ddebb02269d0b21},
      {"aes_round_keys", {}, 240, 0x77ac09d1d729dfa7},
  };
  ASSERT_EQ(all.size(), generator_names().size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Made& made = all[i];
    EXPECT_EQ(generator_names()[i].name, made.name);
    const auto bytes = generated<std::byte>(made.bytes, made.name, made.parameters);
    EXPECT_EQ(hash_of(std::span<const std::byte>(bytes)), made.digest) << made.name;
    const Launch small = launch_with(
        buffer_of(made.bytes - 1, ScalarType::u8, generated_by(made.name, made.parameters)));
    EXPECT_FALSE(initial_memory(small, default_addresses(small))) << made.name;
  }
}

TEST(Fill, what_each_type_is_filled_with_at_random_is_fixed_for_ever) {
  std::uint64_t digest = 0;
  for (int type = 0; type <= static_cast<int>(ScalarType::f64); ++type) {
    for (const double high : {0.0, 9.0}) {
      Fill fill = fill_of(FillKind::random);
      fill.low = high / -3;
      fill.high = high;
      const auto bytes = content<std::byte>(
          launch_with(buffer_of(800, static_cast<ScalarType>(type), std::move(fill)), 3));
      digest = hash_of(digest, hash_of(std::span<const std::byte>(bytes)));
    }
  }
  EXPECT_EQ(digest, 0xbef4ac3b9a02f2a5U);
}

TEST(Fill, given_values_are_repeated_to_the_end) {
  Fill fill = fill_of(FillKind::values);
  EXPECT_FALSE(initial_memory(launch_with(buffer_of(8, ScalarType::i16, fill)),
                              std::vector<std::uint64_t>{0}));
  fill.values = {-1, 2, 3};
  EXPECT_EQ(content<std::int16_t>(launch_with(buffer_of(8, ScalarType::i16, fill))),
            (std::vector<std::int16_t>{-1, 2, 3, -1}));
}

TEST(Scalars, are_read_back_as_they_were_made) {
  const std::vector<std::tuple<ScalarType, double, std::uint64_t>> cases{
      {ScalarType::i8, -1, 0xff},
      {ScalarType::u8, 255, 0xff},
      {ScalarType::i16, -2, 0xfffe},
      {ScalarType::u16, 65534, 0xfffe},
      {ScalarType::i32, -3, 0xfffffffd},
      {ScalarType::u32, 4294967293, 0xfffffffd},
      {ScalarType::i64, -4, 0xfffffffffffffffc},
      {ScalarType::u64, 0x1p63, 0x8000000000000000},
      {ScalarType::f16, -1.5, 0xbe00},
      {ScalarType::f32, -1.5, 0xbfc00000},
      {ScalarType::f64, -1.5, 0xbff8000000000000},
  };
  for (const auto& [type, value, bits] : cases) {
    const Scalar made = make_scalar(type, value);
    EXPECT_EQ(made.bits, bits) << name_of(type);
    EXPECT_EQ(made.type, type);
    EXPECT_EQ(to_double(made), value) << name_of(type);
  }
}

TEST(Generators, errors_name_the_buffer_and_what_is_known) {
  const auto message = [](Fill fill) {
    const Launch launch = launch_with(buffer_of(16, ScalarType::u32, std::move(fill)));
    return initial_memory(launch, default_addresses(launch)).error().message;
  };
  EXPECT_TRUE(message(generated_by("grid", {}))
                  .starts_with("buffer 'b': there is no generator 'grid'; known are graph_nodes"));
  EXPECT_EQ(message(generated_by("permutation", {})),
            "buffer 'b': generator 'permutation' needs the parameter 'elements'");
  EXPECT_EQ(message(generated_by("permutation", {{"elements", 5}})),
            "buffer 'b': generator 'permutation' makes 20 bytes, the buffer has 16");
  EXPECT_EQ(message(generated_by("permutation", {{"elements", 0}})),
            "buffer 'b': generator 'permutation': elements = 0 is not within 1 .. 2^31");
}

TEST(AesTables, agree_with_fips_197) {
  const auto box = aes_sbox();
  EXPECT_EQ(box[0x00], 0x63);
  EXPECT_EQ(box[0x53], 0xed);  // 5.1.1
  std::set<std::uint8_t> values(box.begin(), box.end());
  EXPECT_EQ(values.size(), 256U);
  // A.3: w[8] and w[59] of the key 603deb10 15ca71be 2b73aef0 857d7781 1f352c07 3b6108d7 2d9810a3
  // 0914dff4.
  const std::array<std::uint8_t, 32> key{0x60, 0x3d, 0xeb, 0x10, 0x15, 0xca, 0x71, 0xbe,
                                         0x2b, 0x73, 0xae, 0xf0, 0x85, 0x7d, 0x77, 0x81,
                                         0x1f, 0x35, 0x2c, 0x07, 0x3b, 0x61, 0x08, 0xd7,
                                         0x2d, 0x98, 0x10, 0xa3, 0x09, 0x14, 0xdf, 0xf4};
  const auto keys = aes256_round_keys(key);
  const auto word = [&](std::size_t i) {
    return std::vector<std::uint8_t>(&keys[4 * i], &keys[4 * i] + 4);
  };
  EXPECT_EQ(word(8), (std::vector<std::uint8_t>{0x9b, 0xa3, 0x54, 0x11}));
  EXPECT_EQ(word(59), (std::vector<std::uint8_t>{0x70, 0x6c, 0x63, 0x1e}));
}

TEST(Scalars, every_half_survives_the_way_through_double) {
  for (std::uint64_t bits = 0; bits < 0x10000; ++bits) {
    const Scalar half{ScalarType::f16, bits};
    const double value = to_double(half);
    if (std::isnan(value)) continue;
    ASSERT_EQ(make_scalar(ScalarType::f16, value), half) << bits;
  }
}

TEST(Scalars, halves_round_to_nearest_even) {
  const auto half = [](double value) { return make_scalar(ScalarType::f16, value).bits; };
  EXPECT_EQ(half(1.0 + 0x1p-11), 0x3c00U);            // tie, down to even
  EXPECT_EQ(half(1.0 + 3 * 0x1p-11), 0x3c02U);        // tie, up to even
  EXPECT_EQ(half(1.0 + 0x1p-11 + 0x1p-40), 0x3c01U);  // just above a tie
  EXPECT_EQ(half(65519.999), 0x7bffU);
  EXPECT_EQ(half(65520.0), 0x7c00U);
  EXPECT_EQ(half(0x1p-25), 0U);
  EXPECT_EQ(half(-0x1p-24), 0x8001U);
}

}  // namespace
}  // namespace demarc::gpu
