// Products of one element, by each name and with each scale.
#include "blas.hpp"

namespace demarc::cuda {
namespace {

class BlasForms : public Blas {};

// Each name with 2 x 3 + 4 of its type, with batches where it has them.
TEST_F(BlasForms, have_the_arguments_of_their_names) {
  using Size = std::int64_t;
  const auto ran = [&](const std::string& name, BlasType type, auto size) {
    const auto a = on_card(as_type({2, 2}, type));
    const auto b = on_card(as_type({3, 3}, type));
    const auto c = on_card(as_type({4, 4}, type));
    const auto one = as_type({1}, type);
    const void* const scale = one.data();
    const auto addresses = [&](unsigned long long at) {
      const unsigned long long both[] = {at, at + type_bytes(type)};
      std::vector<std::byte> bytes(sizeof both);
      std::memcpy(bytes.data(), both, sizeof both);
      return on_card(bytes);
    };
    const auto side = size;
    const auto batches = static_cast<decltype(size)>(2);
    double expected_last = 10;
    BlasCode code = -1;
    if (name.find("Strided") != std::string::npos) {
      code = call(name.c_str(), handle, 0, 0, side, side, side, scale, a, side, 1LL, b, side, 1LL,
                  scale, c, side, 1LL, batches);
    } else if (name.find("Batched") != std::string::npos) {
      code = call(name.c_str(), handle, 0, 0, side, side, side, scale, addresses(a), side,
                  addresses(b), side, scale, addresses(c), side, batches);
    } else {
      expected_last = 4;
      code = call(name.c_str(), handle, 0, 0, side, side, side, scale, a, side, b, side, scale, c,
                  side);
    }
    EXPECT_EQ(code, blas_success) << name;
    const auto got = from_card(c, 2U * type_bytes(type));
    EXPECT_EQ(number_of(got.data(), type), 10) << name;
    EXPECT_EQ(number_of(got.data() + type_bytes(type), type), expected_last) << name;
  };
  for (const auto& [letter, version, type] :
       {std::tuple{"S", "_v2", type_f32}, {"D", "_v2", type_f64}, {"H", "", type_f16}}) {
    const std::string name = std::string("cublas") + letter + "gemm";
    for (const std::string& form : {name + version, name + "Batched", name + "StridedBatched"}) {
      ran(form, type, 1);
      ran(form + "_64", type, Size{1});
    }
  }
}

// Halves, as the host reads them: below the smallest normal one, the largest, infinity, NaN.
TEST_F(BlasForms, of_halves_have_every_number_as_a_scale) {
  const auto ran = [&](std::uint16_t alpha) {
    const auto x = on_card(as_type({64}, type_f16));
    const auto out = on_card(as_type({0}, type_f16));
    const std::uint16_t zero = 0;
    EXPECT_EQ(call("cublasHgemm", handle, 0, 0, 1, 1, 1, &alpha, x, 1, x, 1, &zero, out, 1),
              blas_success);
    return number_of(from_card(out, 2).data(), type_f16);
  };
  EXPECT_EQ(ran(0x0001), 4096 * 0x1p-24);
  EXPECT_EQ(ran(0x83ff), -4096 * 1023 * 0x1p-24);
  EXPECT_EQ(ran(0x0400), 4096 * 0x1p-14);
  EXPECT_EQ(ran(0xc500), -4096 * 5);
  EXPECT_EQ(ran(0x7c00), INFINITY);
  EXPECT_EQ(ran(0xfc00), -INFINITY);
  EXPECT_TRUE(std::isnan(ran(0x7e00)));
}

// Only a scale in host memory says what is not read.
TEST_F(BlasForms, with_scales_on_the_card_may_lack_operands) {
  ASSERT_EQ(call("cublasSetPointerMode_v2", handle, 1), blas_success);
  const auto zero = on_card(as_type({0}, type_f32));
  const auto two = on_card(as_type({2}, type_f32));
  const auto out = on_card(as_type({5}, type_f32));
  const unsigned long long none = 0;
  const auto ran = [&](unsigned long long c) {
    return call("cublasSgemm_v2", handle, 0, 0, 1, 1, 1, zero, none, 1, none, 1, two, c, 1);
  };
  EXPECT_EQ(ran(out), blas_success);
  EXPECT_EQ(number_of(from_card(out, 4).data(), type_f32), 10);
  EXPECT_EQ(ran(none), blas_invalid_value);
}

}  // namespace
}  // namespace demarc::cuda
