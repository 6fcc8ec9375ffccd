// Which kernel of libdemarc_blas.so a call gets, in how many blocks, and where grids end. Nothing
// runs.
#include "blas.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

std::vector<fake::WatchedLaunch> launches;

class BlasLaunches : public Blas {
 protected:
  void SetUp() override {
    Blas::SetUp();
    launches.clear();
    driver->runs = false;
    driver->launched = [](const fake::WatchedLaunch& launch) { launches.push_back(launch); };
  }
  struct Product {
    int ta = 0, tb = 0;
    std::int64_t m = 1, n = 1, k = 8;
    BlasType type = type_f16;
    std::int64_t batches = 1;
    bool arrays = false;
    int more = 0;  // added to the leading dimensions of A and B
  };
  BlasCode run(const Product& p) {
    launches.clear();
    using Size = std::int64_t;
    const double double_one = 1;
    const float one = 1;
    const void* const scale =
        p.type == type_f64 ? static_cast<const void*>(&double_one) : static_cast<const void*>(&one);
    const Size lda = std::max<Size>(1, p.ta == 0 ? p.m : p.k) + p.more;
    const Size ldb = std::max<Size>(1, p.tb == 0 ? p.k : p.n) + p.more;
    const Size ldc = std::max<Size>(1, p.m);
    const int compute = p.type == type_f64 ? 70 : 68;
    if (p.arrays) {
      return call("cublasGemmBatchedEx_64", handle, p.ta, p.tb, p.m, p.n, p.k, scale, somewhere,
                  int{p.type}, lda, somewhere, int{p.type}, ldb, scale, somewhere, int{p.type}, ldc,
                  p.batches, compute, -1);
    }
    return call("cublasGemmStridedBatchedEx_64", handle, p.ta, p.tb, p.m, p.n, p.k, scale,
                somewhere, int{p.type}, lda, 0LL, somewhere, int{p.type}, ldb, 0LL, scale,
                somewhere, int{p.type}, ldc, 0LL, p.batches, compute, -1);
  }
  // The kernel, its blocks, threads and bytes of shared memory.
  std::string kernel_of(const Product& p) {
    EXPECT_EQ(run(p), blas_success);
    if (launches.size() != 1) return std::to_string(launches.size()) + " launches";
    const fake::WatchedLaunch& one = launches.front();
    EXPECT_EQ(one.grid[1], 1U);
    EXPECT_EQ(one.grid[2], p.batches);
    return one.kernel + " " + std::to_string(one.grid[0]) + " x " + std::to_string(one.threads) +
           ", " + std::to_string(one.shared_bytes);
  }
  template <class Number>
  BlasCode gemv(const char* name, int operation, std::int64_t m, std::int64_t n) {
    launches.clear();
    const Number one = 1;
    return call(name, handle, operation, m, n, &one, somewhere, m, somewhere, std::int64_t{1}, &one,
                somewhere, std::int64_t{1});
  }
  static std::uint32_t blocks() {
    EXPECT_EQ(launches.size(), 1U);
    return launches.empty() ? 0 : launches.front().grid[0];
  }

  static constexpr unsigned long long somewhere = 1ULL << 40U;
};

TEST_F(BlasLaunches, of_halves_take_flat_tiles_for_up_to_16_rows_or_columns) {
  constexpr const char* flat = " x 128, 61440";
  EXPECT_EQ(kernel_of({.m = 64, .n = 16}), std::string("demarc_f16_flat_da 1") + flat);
  EXPECT_EQ(kernel_of({.m = 65, .n = 16}), std::string("demarc_f16_flat_da 2") + flat);
  EXPECT_EQ(kernel_of({.m = 16, .n = 129}), std::string("demarc_f16_flat_ad 3") + flat);
  EXPECT_EQ(kernel_of({.ta = 1, .m = 16, .n = 17}), std::string("demarc_f16_flat_dd 1") + flat);
  EXPECT_EQ(kernel_of({.tb = 1, .m = 16, .n = 16}), std::string("demarc_f16_flat_aa 1") + flat);
  EXPECT_EQ(kernel_of({.m = 17, .n = 17}), "demarc_f16_da 1 x 128, 98304");
  EXPECT_EQ(kernel_of({.ta = 1, .tb = 2, .m = 129, .n = 128}), "demarc_f16_ad 2 x 128, 98304");
}

// The stand-in's card has 24 SMs.
TEST_F(BlasLaunches, of_halves_take_large_tiles_where_each_sm_gets_one) {
  const Product enough{.m = 17, .n = 17, .batches = 24};
  EXPECT_EQ(kernel_of(enough), "demarc_f16_large_da 1 x 256, 147456");
  EXPECT_EQ(kernel_of({.m = 17, .n = 17, .batches = 23}), "demarc_f16_da 1 x 128, 98304");
  EXPECT_EQ(kernel_of({.m = 257, .n = 17, .batches = 12}), "demarc_f16_large_da 2 x 256, 147456");
  EXPECT_EQ(kernel_of({.m = 17, .n = 129, .batches = 11}), "demarc_f16_da 2 x 128, 98304");
  driver->fails = "cuDeviceGetAttribute";
  driver->code = 801;
  EXPECT_EQ(kernel_of(enough), "demarc_f16_da 1 x 128, 98304") << "a block may lack the room";
}

TEST_F(BlasLaunches, of_f32_take_few_rows_where_both_operands_lie_along_the_depth) {
  const auto kernel = [&](Product p) {
    p.type = type_f32;
    p.ta = 1;
    return kernel_of(p);
  };
  EXPECT_EQ(kernel({.m = 33, .n = 4}), "demarc_f32_few_4 2 x 256, 0");
  EXPECT_EQ(kernel({.m = 32, .n = 5}), "demarc_f32_few_16 1 x 256, 0");
  EXPECT_EQ(kernel({.m = 4, .n = 33}), "demarc_f32_few_4 2 x 256, 0") << "turned";
  EXPECT_EQ(kernel({.m = 16, .n = 16}), "demarc_f32_few_16 1 x 256, 0");
  EXPECT_EQ(kernel({.m = 17, .n = 17}), "demarc_f32 1 x 256, 0");
  EXPECT_EQ(kernel({.m = 129, .n = 257}), "demarc_f32 6 x 256, 0");
  EXPECT_EQ(kernel({.m = 4, .n = 4, .more = 1}), "demarc_f32 1 x 256, 0") << "not aligned";
  EXPECT_EQ(kernel({.m = 4, .n = 4, .arrays = true}), "demarc_f32 1 x 256, 0");
  EXPECT_EQ(kernel({.tb = 1, .m = 4, .n = 4}), "demarc_f32 1 x 256, 0");
  EXPECT_EQ(kernel_of({.m = 4, .n = 4, .type = type_f32}), "demarc_f32 1 x 256, 0");
}

TEST_F(BlasLaunches, of_f64_take_tiles_of_64_rows_and_columns) {
  EXPECT_EQ(kernel_of({.ta = 1, .m = 64, .n = 1, .type = type_f64}), "demarc_f64 1 x 256, 0");
  EXPECT_EQ(kernel_of({.m = 65, .n = 129, .type = type_f64}), "demarc_f64 6 x 256, 0");
}

TEST_F(BlasLaunches, of_more_batches_than_a_grid_has_are_several) {
  EXPECT_EQ(run({.batches = 65535}), blas_success);
  EXPECT_EQ(launches.size(), 1U);
  EXPECT_EQ(run({.batches = 65536}), blas_success);
  ASSERT_EQ(launches.size(), 2U);
  EXPECT_EQ(launches.front().grid[2], 65535U);
  EXPECT_EQ(launches.back().grid[2], 1U);
}

TEST_F(BlasLaunches, of_products_end_at_2147483647_rows_and_2_to_the_42_elements) {
  constexpr std::int64_t most = 2147483647;
  EXPECT_EQ(run({.m = most, .n = 0}), blas_success);
  EXPECT_EQ(run({.m = most + 1, .n = 0}), blas_not_supported);
  EXPECT_EQ(run({.m = 0, .n = most}), blas_success);
  EXPECT_EQ(run({.m = 0, .n = most + 1}), blas_not_supported);
  EXPECT_EQ(run({.m = 0, .n = 0, .k = most}), blas_success);
  EXPECT_EQ(run({.m = 0, .n = 0, .k = most + 1}), blas_not_supported);
  constexpr std::int64_t side = std::int64_t{1} << 21;
  EXPECT_EQ(run({.m = side, .n = side, .type = type_f64}), blas_success);
  EXPECT_EQ(blocks(), 1U << 30U);
  testing::internal::CaptureStderr();
  EXPECT_EQ(run({.m = side + 1, .n = side, .type = type_f64}), blas_not_supported);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("a result has more than 2^42 elements"));
}

// A block has 128 bytes of y, or 8 of its elements where A is transposed.
TEST_F(BlasLaunches, of_a_matrix_and_a_vector_end_with_the_blocks_of_a_grid) {
  constexpr std::int64_t grid = 2147483647;
  constexpr std::uint32_t all = 2147483647;
  constexpr std::int64_t large = std::int64_t{1} << 45;
  EXPECT_EQ(gemv<float>("cublasSgemv_v2_64", 0, grid * 32, 1), blas_success);
  EXPECT_EQ(blocks(), all);
  EXPECT_EQ(gemv<double>("cublasDgemv_v2_64", 0, grid * 16, 1), blas_success);
  EXPECT_EQ(blocks(), all);
  EXPECT_EQ(gemv<double>("cublasDgemv_v2_64", 1, 1, grid * 8), blas_success);
  EXPECT_EQ(blocks(), all);
  EXPECT_EQ(gemv<double>("cublasDgemv_v2_64", 1, large, 9), blas_success) << "x may be longer";
  EXPECT_EQ(blocks(), 2U);
  EXPECT_EQ(gemv<float>("cublasSgemv_v2_64", 0, 33, large), blas_success) << "x may be longer";
  EXPECT_EQ(blocks(), 2U);
  testing::internal::CaptureStderr();
  EXPECT_EQ(gemv<float>("cublasSgemv_v2_64", 0, grid * 32 + 1, 1), blas_not_supported);
  EXPECT_EQ(gemv<double>("cublasDgemv_v2_64", 0, grid * 16 + 1, 1), blas_not_supported);
  EXPECT_EQ(gemv<float>("cublasSgemv_v2_64", 2, 1, grid * 8 + 1), blas_not_supported);
  EXPECT_EQ(gemv<double>("cublasDgemv_v2_64", 0, (std::int64_t{1} << 36) + 16, 1),
            blas_not_supported)
      << "a block in 32 bits";
  EXPECT_TRUE(launches.empty());
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("cublasSgemv_v2_64 was refused, because its result has more than "
                              "68719476704 elements"));
  EXPECT_THAT(said, HasSubstr("more than 34359738352 elements"));
  EXPECT_THAT(said, HasSubstr("more than 17179869176 elements"));
}

TEST_F(BlasLaunches, of_vectors_have_a_block_for_256_elements_and_no_more_than_1024) {
  const float one = 1;
  float sum = 0;
  const auto axpy = [&](std::int64_t n) {
    launches.clear();
    EXPECT_EQ(call("cublasSaxpy_v2_64", handle, n, &one, somewhere, std::int64_t{1}, somewhere,
                   std::int64_t{1}),
              blas_success);
    return launches.empty() ? 0 : blocks();
  };
  EXPECT_EQ(axpy(-1), 0U);
  EXPECT_EQ(axpy(0), 0U);
  EXPECT_EQ(axpy(256), 1U);
  EXPECT_EQ(axpy(257), 2U);
  EXPECT_EQ(axpy(std::int64_t{1} << 40), 1024U);
  ASSERT_EQ(call("cublasSetPointerMode_v2", handle, 1), blas_success);
  const auto dot = [&](std::int64_t n) {
    launches.clear();
    EXPECT_EQ(call("cublasSdot_v2_64", handle, n, somewhere, std::int64_t{1}, somewhere,
                   std::int64_t{1}, &sum),
              blas_success);
    EXPECT_EQ(launches.size(), 2U);
    return launches.front().grid[0];
  };
  EXPECT_EQ(dot(-1), 1U);
  EXPECT_EQ(dot(256), 1U);
  EXPECT_EQ(dot(257), 2U);
  EXPECT_EQ(dot(std::int64_t{1} << 40), 64U) << "as many parts as there is memory for";
}

// The host cannot read it: another process shows that it does not.
TEST_F(BlasLaunches, leave_scales_in_memory_of_the_card_to_the_kernel) {
  EXPECT_EXIT(
      {
        DEMAND(call("cublasSetPointerMode_v2", handle, 1) == blas_success);
        DEMAND(call("cublasSscal_v2", handle, 1, somewhere, somewhere, 1) == blas_success);
        DEMAND(call("cublasDgemv_v2", handle, 0, 1, 1, somewhere, somewhere, 1, somewhere, 1,
                    somewhere, somewhere, 1) == blas_success);
        DEMAND(call("cublasSgemm_v2", handle, 0, 0, 1, 1, 1, somewhere, somewhere, 1, somewhere, 1,
                    somewhere, somewhere, 1) == blas_success);
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace demarc::cuda
