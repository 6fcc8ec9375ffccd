// Copies and fills of a program whose memory lies in a share.
#include "program_on_share.hpp"

namespace demarc::cuda {
namespace {

class CopyCallsOfPrograms : public test::ProgramCalls<test::ColorKind::remainders> {};

std::vector<std::uint8_t> bytes_from(std::size_t count, std::uint32_t seed) {
  std::vector<std::uint8_t> bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 9 + seed);
  return bytes;
}

TEST_F(CopyCallsOfPrograms, copies_go_wherever_they_begin_and_however_long_they_are) {
  const DevicePointer a = allocated(70000);
  const DevicePointer b = allocated(70000);
  write(a, bytes_from(70000, 1));
  write(b, bytes_from(70000, 2));
  auto expected = bytes_from(70000, 2);
  const auto source = bytes_from(70000, 1);
  const auto new_bytes = bytes_from(5000, 3);
  ASSERT_EQ(api.cuMemcpyDtoD_v2(b + 1003, a + 17, 40001), cu_success);
  std::copy_n(source.begin() + 17, 40001, expected.begin() + 1003);
  ASSERT_EQ(api.cuMemcpyHtoDAsync_v2(b + 60001, new_bytes.data(), 5000, nullptr), cu_success);
  std::copy_n(new_bytes.begin(), 5000, expected.begin() + 60001);
  ASSERT_EQ(api.cuMemcpyDtoDAsync_v2(b + 5, a + 9, 3, nullptr), cu_success);
  std::copy_n(source.begin() + 9, 3, expected.begin() + 5);
  EXPECT_EQ(read<std::uint8_t>(b, 70000), expected);
  std::vector<std::uint8_t> part(777);
  ASSERT_EQ(api.cuMemcpyDtoHAsync_v2(part.data(), b + 999, 777, nullptr), cu_success);
  ASSERT_EQ(api.cuCtxSynchronize(), cu_success);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), expected.begin() + 999));
  EXPECT_EQ(ask("cuMemcpyPeer", a, nullptr, b, nullptr, std::size_t{70000}), cu_success);
  EXPECT_EQ(read<std::uint8_t>(a, 70000), expected);
  EXPECT_EQ(ask("cuMemcpyPeerAsync", a, nullptr, b + 1, nullptr, std::size_t{10}, nullptr),
            cu_success);
  EXPECT_EQ(read<std::uint8_t>(a, 1)[0], expected[1]);
}

TEST_F(CopyCallsOfPrograms, copies_of_unified_addresses_find_which_side_is_the_shares) {
  const DevicePointer a = allocated(4096);
  auto host = bytes_from(4096, 5);
  const auto at_host = reinterpret_cast<DevicePointer>(host.data());
  EXPECT_EQ(ask("cuMemcpy", a, at_host, host.size()), cu_success);
  EXPECT_EQ(read<std::uint8_t>(a, 4096), bytes_from(4096, 5));
  std::fill(host.begin(), host.end(), 0);
  EXPECT_EQ(ask("cuMemcpyAsync_ptsz", at_host, a + 96, std::size_t{4000}, nullptr), cu_success);
  EXPECT_EQ(host[0], bytes_from(4096, 5)[96]);
  EXPECT_EQ(ask("cuMemcpy", at_host, at_host + 64, std::size_t{64}), std::nullopt)
      << "the driver's own";
  EXPECT_EQ(ask("cuMemcpy", a, at_host, std::size_t{0}), cu_success);
}

// The driver copies from and to ordinary host memory only what is called so.
TEST_F(CopyCallsOfPrograms, unified_addresses_that_the_driver_does_not_know_are_the_hosts) {
  static DriverApi real_driver;
  static std::vector<std::pair<unsigned, unsigned>> copied;  // types of target and source
  static std::vector<DevicePointer> looked_at;
  real_driver = own;
  own.cuMemcpy2DAsync_v2 = [](const CuCopy2d* copy, CuStream stream) {
    copied.emplace_back(copy->target_type, copy->source_type);
    return real_driver.cuMemcpy2DAsync_v2(copy, stream);
  };
  own.cuPointerGetAttribute = [](void* value, int attribute, DevicePointer address) {
    looked_at.push_back(address);
    return real_driver.cuPointerGetAttribute(value, attribute, address);
  };
  const DevicePointer a = allocated(64);
  std::array<std::uint8_t, 64> ordinary{};
  void* pinned = nullptr;
  ASSERT_EQ(own.cuMemHostAlloc(&pinned, 64, 0), cu_success);
  for (const auto& [host, type] : {std::pair{static_cast<void*>(ordinary.data()), cu_memory_host},
                                   std::pair{pinned, cu_memory_unified}}) {
    const auto address = reinterpret_cast<DevicePointer>(host);
    copied.clear();
    looked_at.clear();
    const std::uint64_t before = record->staging_bytes();
    EXPECT_EQ(ask("cuMemcpy", a, address, std::size_t{64}), cu_success);
    EXPECT_EQ(ask("cuMemcpy", address, a, std::size_t{64}), cu_success);
    ASSERT_EQ(copied.size(), 2U);
    EXPECT_EQ(record->staging_bytes() - before, 128U) << "what went through other memory";
    EXPECT_EQ(copied[0].second, type) << "from the host";
    EXPECT_EQ(copied[1].first, type) << "to the host";
    EXPECT_THAT(looked_at, testing::Each(address)) << "what lies in the window is known";
  }
  EXPECT_EQ(own.cuMemFreeHost(pinned), cu_success);
}

TEST_F(CopyCallsOfPrograms, rectangles_and_boxes_are_copied_row_by_row) {
  const DevicePointer a = allocated(64 * 40 * 3);
  write(a, std::vector<std::uint8_t>(64 * 40 * 3, 9));
  auto host = bytes_from(50 * 30 * 3, 1);
  CuCopy2d flat{};
  flat.source_type = cu_memory_host;
  flat.source_host = host.data();
  flat.source_pitch = 50;
  flat.source_x_bytes = 3;
  flat.source_y = 2;
  flat.target_type = cu_memory_device;
  flat.target_device = a;
  flat.target_pitch = 64;
  flat.target_x_bytes = 5;
  flat.target_y = 1;
  flat.width_bytes = 45;
  flat.height = 20;
  EXPECT_EQ(ask("cuMemcpy2D_v2", &flat), cu_success);
  std::vector<std::uint8_t> expected(64 * 40 * 3, 9);
  for (std::size_t y = 0; y < 20; ++y) {
    std::copy_n(host.begin() + static_cast<std::ptrdiff_t>((y + 2) * 50 + 3), 45,
                expected.begin() + static_cast<std::ptrdiff_t>((y + 1) * 64 + 5));
  }
  EXPECT_EQ(read<std::uint8_t>(a, expected.size()), expected);
  CuCopy3d box{};
  box.source.type = cu_memory_device;
  box.source.device = a;
  box.source.pitch = 64;
  box.source.height = 40;
  box.source.z = 1;
  box.source.x_bytes = 7;
  box.target.type = cu_memory_host;
  box.target.host = host.data();
  box.target.pitch = 50;
  box.target.height = 30;
  box.target.y = 4;
  box.width_bytes = 33;
  box.height = 11;
  box.depth = 2;
  const auto pattern_of_a = bytes_from(expected.size(), 8);
  write(a, pattern_of_a);
  auto boxed = host;
  EXPECT_EQ(ask("cuMemcpy3D_v2", &box), cu_success);
  for (std::size_t z = 0; z < 2; ++z) {
    for (std::size_t y = 0; y < 11; ++y) {
      std::copy_n(pattern_of_a.begin() + static_cast<std::ptrdiff_t>(((z + 1) * 40 + y) * 64 + 7),
                  33, boxed.begin() + static_cast<std::ptrdiff_t>((z * 30 + y + 4) * 50));
    }
  }
  EXPECT_EQ(host, boxed);
  for (const unsigned array : {0U, cu_memory_array}) {
    flat.source_type = array;
    box.target.type = array;
    EXPECT_EQ(ask("cuMemcpy2DAsync_v2", &flat, nullptr), cu_error_not_supported);
    EXPECT_EQ(ask("cuMemcpy3DAsync_v2", &box, nullptr), cu_error_not_supported);
  }
  flat.source_type = cu_memory_host;
  flat.target_pitch = 44;
  EXPECT_EQ(ask("cuMemcpy2DUnaligned_v2", &flat), cu_error_invalid_value) << "rows overlap";
  flat.target_pitch = 64;
  flat.height = ~std::size_t{0};
  EXPECT_EQ(ask("cuMemcpy2D_v2", &flat), cu_error_invalid_value);
  box.target.type = cu_memory_host;
  box.source.height = 10;
  EXPECT_EQ(ask("cuMemcpy3D_v2", &box), cu_error_invalid_value) << "planes overlap";
  box.source.height = 40;
  box.depth = ~std::size_t{0};
  EXPECT_EQ(ask("cuMemcpy3D_v2", &box), cu_error_invalid_value);
}

// A side of a box: its rows and planes, and where the copy begins in it.
struct BoxSide {
  std::size_t pitch, height, x, y, z;
  [[nodiscard]] std::size_t at(std::size_t column, std::size_t row, std::size_t plane) const {
    return ((z + plane) * height + y + row) * pitch + x + column;
  }
  [[nodiscard]] CuCopy3d::Side of(unsigned type, void* host, DevicePointer device) const {
    CuCopy3d::Side side{};
    side.type = type;
    side.host = host;
    side.device = device;
    side.pitch = pitch;
    side.height = height;
    side.x_bytes = x;
    side.y = y;
    side.z = z;
    return side;
  }
};

TEST_F(CopyCallsOfPrograms, boxes_begin_where_they_are_to_begin_on_both_sides) {
  constexpr std::size_t all = 16 * 10 * 4;
  const DevicePointer a = allocated(all);
  const BoxSide first{16, 10, 3, 2, 1};
  const BoxSide second{14, 9, 5, 4, 2};
  for (const auto& [on_card, on_host] : {std::pair{first, second}, std::pair{second, first}}) {
    for (const bool to_card : {true, false}) {
      auto host = bytes_from(all, 1);
      const auto card = bytes_from(all, 2);
      write(a, card);
      const BoxSide& to = to_card ? on_card : on_host;
      const BoxSide& from = to_card ? on_host : on_card;
      CuCopy3d box{};
      const auto card_side = on_card.of(cu_memory_device, nullptr, a);
      const auto host_side = on_host.of(cu_memory_host, host.data(), 0);
      box.target = to_card ? card_side : host_side;
      box.source = to_card ? host_side : card_side;
      box.width_bytes = 7;
      box.height = 5;
      box.depth = 2;
      auto expected = to_card ? card : host;
      const auto& source = to_card ? host : card;
      for (std::size_t z = 0; z < box.depth; ++z) {
        for (std::size_t y = 0; y < box.height; ++y) {
          for (std::size_t x = 0; x < box.width_bytes; ++x) {
            expected[to.at(x, y, z)] = source[from.at(x, y, z)];
          }
        }
      }
      EXPECT_EQ(ask("cuMemcpy3D_v2", &box), cu_success);
      EXPECT_EQ(to_card ? read<std::uint8_t>(a, all) : host, expected);
    }
  }
}

TEST_F(CopyCallsOfPrograms, rectangles_of_the_card_begin_where_they_are_to_begin_in_the_hosts) {
  const DevicePointer a = allocated(64 * 10);
  write(a, bytes_from(64 * 10, 1));
  std::vector<std::uint8_t> host(50 * 10, 9);
  CuCopy2d flat{};
  flat.source_type = cu_memory_device;
  flat.source_device = a;
  flat.source_pitch = 64;
  flat.source_x_bytes = 3;
  flat.source_y = 2;
  flat.target_type = cu_memory_host;
  flat.target_host = host.data();
  flat.target_pitch = 50;
  flat.target_x_bytes = 5;
  flat.target_y = 1;
  flat.width_bytes = 40;
  flat.height = 6;
  auto expected = host;
  const auto source = bytes_from(64 * 10, 1);
  for (std::size_t y = 0; y < 6; ++y) {
    std::copy_n(source.begin() + static_cast<std::ptrdiff_t>((y + 2) * 64 + 3), 40,
                expected.begin() + static_cast<std::ptrdiff_t>((y + 1) * 50 + 5));
  }
  const std::uint64_t before = record->staging_bytes();
  EXPECT_EQ(ask("cuMemcpy2D_v2", &flat), cu_success);
  EXPECT_EQ(host, expected);
  EXPECT_EQ(record->staging_bytes() - before, 40U * 6);
}

// The pitch of one row, and the plane of one, say nothing; rows and planes may touch each other.
TEST_F(CopyCallsOfPrograms, rows_and_planes_may_touch_and_not_overlap) {
  const DevicePointer a = allocated(4096);
  const DevicePointer b = allocated(4096);
  write(a, bytes_from(4096, 1));
  const auto copied = [&](std::size_t pitch, std::size_t rows_of_a_plane, std::size_t height,
                          std::size_t depth) {
    CuCopy3d box{};
    box.source.type = box.target.type = cu_memory_device;
    box.source.device = a;
    box.target.device = b;
    box.source.pitch = box.target.pitch = pitch;
    box.source.height = box.target.height = rows_of_a_plane;
    box.width_bytes = 16;
    box.height = height;
    box.depth = depth;
    return ask("cuMemcpy3D_v2", &box);
  };
  EXPECT_EQ(copied(0, 0, 1, 1), cu_success);
  EXPECT_EQ(copied(16, 0, 2, 1), cu_success);
  EXPECT_EQ(copied(15, 2, 2, 1), cu_error_invalid_value);
  EXPECT_EQ(copied(16, 2, 2, 2), cu_success);
  EXPECT_EQ(read<std::uint8_t>(b, 64), read<std::uint8_t>(a, 64)) << "all four rows";
  EXPECT_EQ(copied(16, 1, 2, 2), cu_error_invalid_value) << "planes overlap";
  EXPECT_EQ(copied(15, 1, 1, 2), cu_error_invalid_value) << "planes of one row overlap";
  EXPECT_EQ(copied(16, 1, 1, 2), cu_success);
  EXPECT_EQ(copied(0, 0, 0, 2), cu_success) << "no bytes";
  EXPECT_EQ(copied(0, 0, 2, 0), cu_success) << "no bytes";
  EXPECT_EQ(copied(4096, 2, 2, 1), cu_error_invalid_value) << "behind the allocation";
  EXPECT_EQ(copied(4080, 1, 2, 1), cu_success) << "up to its last byte";
}

TEST_F(CopyCallsOfPrograms, fills_write_elements_of_every_width) {
  const DevicePointer a = allocated(4096);
  write(a, std::vector<std::uint8_t>(4096, 1));
  ASSERT_EQ(api.cuMemsetD8_v2(a + 3, 0xab, 10), cu_success);
  ASSERT_EQ(api.cuMemsetD32Async(a + 64, 0x01020304, 5, nullptr), cu_success);
  EXPECT_EQ(ask("cuMemsetD16_v2", a + 102, std::uint16_t{0x0506}, std::size_t{3}), cu_success);
  EXPECT_EQ(ask("cuMemsetD2D8_v2", a + 1000, std::size_t{100}, std::uint8_t{7}, std::size_t{30},
                std::size_t{4}),
            cu_success);
  EXPECT_EQ(ask("cuMemsetD2D32Async", a + 2000, std::size_t{200}, 0x0a0b0c0dU, std::size_t{2},
                std::size_t{3}, nullptr),
            cu_success);
  std::vector<std::uint8_t> expected(4096, 1);
  std::fill_n(expected.begin() + 3, 10, 0xab);
  for (std::size_t i = 0; i < 20; ++i) expected[64 + i] = static_cast<std::uint8_t>(4 - i % 4);
  for (std::size_t i = 0; i < 6; ++i) expected[102 + i] = i % 2 == 0 ? 6 : 5;
  for (std::size_t y = 0; y < 4; ++y)
    std::fill_n(expected.begin() + 1000 + 100 * static_cast<int>(y), 30, 7);
  for (std::size_t y = 0; y < 3; ++y) {
    for (std::size_t i = 0; i < 8; ++i) {
      expected[2000 + 200 * y + i] = static_cast<std::uint8_t>(0x0d - i % 4);
    }
  }
  EXPECT_EQ(read<std::uint8_t>(a, 4096), expected);
  EXPECT_EQ(
      ask("cuMemsetD2D16_v2", a, std::size_t{5}, std::uint16_t{7}, std::size_t{3}, std::size_t{2}),
      cu_error_invalid_value)
      << "rows overlap";
  EXPECT_EQ(ask("cuMemsetD16Async", a, std::uint16_t{7}, ~std::size_t{0}, nullptr),
            cu_error_invalid_value);
  EXPECT_EQ(ask("cuMemsetD2D8Async", a, std::size_t{1}, std::uint8_t{7}, ~std::size_t{0},
                std::size_t{1}, nullptr),
            cu_error_invalid_value);
  std::uint32_t elsewhere = 0;
  EXPECT_EQ(ask("cuMemsetD32_v2", reinterpret_cast<DevicePointer>(&elsewhere), 1U, std::size_t{1}),
            std::nullopt);
}

TEST_F(CopyCallsOfPrograms, what_is_kept_from_the_program_the_driver_does_not_copy_either) {
  const auto begin = reinterpret_cast<DevicePointer>(kept.data()) + 16;
  const auto result = [&](DevicePointer at, std::size_t bytes) {
    std::vector<std::uint8_t> host(64);
    const auto in = ask("cuMemcpyHtoD_v2", at, host.data(), bytes);
    EXPECT_EQ(ask("cuMemcpyDtoHAsync_v2", host.data(), at, bytes, nullptr), in);
    EXPECT_EQ(ask("cuMemsetD8_v2", at, std::uint8_t{1}, bytes), in);
    return in;
  };
  EXPECT_EQ(result(begin - 8, 8), std::nullopt);
  EXPECT_EQ(result(begin - 8, 9), cu_error_invalid_value);
  EXPECT_EQ(result(begin - 8, 48), cu_error_invalid_value);
  EXPECT_EQ(result(begin, 1), cu_error_invalid_value);
  EXPECT_EQ(result(begin + 31, 1), cu_error_invalid_value);
  EXPECT_EQ(result(begin + 32, 1), std::nullopt);
  EXPECT_EQ(result(begin, 0), std::nullopt);
  EXPECT_EQ(ask("cuMemcpy", allocated(8), begin, std::size_t{8}), cu_error_invalid_value);
}

TEST_F(CopyCallsOfPrograms, no_bytes_are_copied_to_and_from_anywhere) {
  const DevicePointer end = allocated(512) + 512;
  std::uint8_t host = 0;
  EXPECT_EQ(api.cuMemcpyHtoD_v2(end, &host, 0), cu_success);
  EXPECT_EQ(api.cuMemcpyDtoH_v2(&host, end, 0), cu_success);
  EXPECT_EQ(api.cuMemcpyDtoD_v2(end, end, 0), cu_success);
  EXPECT_EQ(api.cuMemsetD8_v2(end, 1, 0), cu_success);
}

TEST_F(CopyCallsOfPrograms, fills_begin_at_whole_elements) {
  const DevicePointer a = allocated(512);
  EXPECT_EQ(ask("cuMemsetD16_v2", a + 1, std::uint16_t{7}, std::size_t{1}), cu_error_invalid_value);
  EXPECT_EQ(ask("cuMemsetD32_v2", a + 2, 7U, std::size_t{1}), cu_error_invalid_value);
  const auto fill_2d = [&](DevicePointer at, std::size_t pitch) {
    return ask("cuMemsetD2D32_v2", at, pitch, 7U, std::size_t{1}, std::size_t{2});
  };
  EXPECT_EQ(fill_2d(a + 2, 8), cu_error_invalid_value);
  EXPECT_EQ(fill_2d(a, 10), cu_error_invalid_value);
  EXPECT_EQ(fill_2d(a, 8), cu_success);
}

TEST_F(CopyCallsOfPrograms, nothing_is_copied_beyond_an_allocation) {
  const DevicePointer a = allocated(1000);
  allocated(1000);
  std::vector<std::uint8_t> host(3000);
  EXPECT_EQ(api.cuMemcpyHtoD_v2(a, host.data(), 1001), cu_error_invalid_value);
  EXPECT_EQ(api.cuMemcpyDtoH_v2(host.data(), a + 500, 501), cu_error_invalid_value);
  EXPECT_EQ(api.cuMemcpyDtoD_v2(a + 1, a, 1000), cu_error_invalid_value);
  EXPECT_EQ(api.cuMemsetD8_v2(a + 999, 0, 2), cu_error_invalid_value);
  EXPECT_EQ(api.cuMemcpyHtoD_v2(window + window_bytes - 4096, host.data(), 1),
            cu_error_invalid_value)
      << "not allocated";
  EXPECT_EQ(api.cuMemcpyHtoD_v2(window - 8, host.data(), 16), cu_error_invalid_value);
}

}  // namespace
}  // namespace demarc::cuda
