// What libdemarc_blas.so asks of the driver, and what becomes of the driver's refusals.
#include <set>
#include <thread>

#include "blas.hpp"
#include "libraries/blas/kernels/vector_arguments.cuh"

namespace demarc::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class BlasDriver : public Blas {
 protected:
  void SetUp() override {
    Blas::SetUp();
    numbers = on_card(as_type({1, 2, 3, 4}, type_f32));
    result = on_card(as_type({0}, type_f32));
  }
  void fail(const char* name, int code, int passes = 0) {
    driver->fails = name;
    driver->code = code;
    driver->passes = passes;
  }

 public:
  BlasCode gemm() {
    return call("cublasSgemm_v2", handle, 1, 0, 1, 1, 4, &one, numbers, 4, numbers, 4, &zero,
                result, 1);
  }
  BlasCode gemm_of_halves() {
    return call("cublasGemmEx", handle, 0, 0, 1, 1, 1, &one, numbers, int{type_f16}, 1, numbers,
                int{type_f16}, 1, &zero, result, int{type_f32}, 1, 68, -1);
  }
  BlasCode gemv() {
    return call("cublasSgemv_v2", handle, 0, 1, 1, &one, numbers, 1, numbers, 1, &zero, result, 1);
  }
  BlasCode axpy() { return call("cublasSaxpy_v2", handle, 1, &one, numbers, 1, result, 1); }
  BlasCode dot() { return call("cublasSdot_v2", handle, 4, numbers, 1, numbers, 1, &sum); }
  BlasCode norm() { return call("cublasSnrm2_v2", handle, 4, numbers, 1, &sum); }

 protected:
  // What a handle is made with, in a thread that has no context.
  BlasCode create(const char* function) {
    BlasCode code = -1;
    std::thread([&] {
      BlasHandle made = &code;
      code = call(function, &made);
      EXPECT_EQ(made == nullptr, code != blas_success) << function;
      if (made == nullptr) return;
      const bool light = std::string(function) == "cublasLtCreate";
      EXPECT_EQ(call(light ? "cublasLtDestroy" : "cublasDestroy_v2", made), blas_success);
    }).join();
    return code;
  }
  CuStream stream() {
    CuStream made = nullptr;
    EXPECT_EQ(
        test::fake_symbol<int(CuStream*, unsigned, int)>("cuStreamCreateWithPriority")(&made, 1, 0),
        0);
    return made;
  }
  void destroy(CuStream gone) {
    EXPECT_EQ(call("cublasSetStream_v2", handle, nullptr), blas_success);
    EXPECT_EQ(test::fake_symbol<int(CuStream)>("cuStreamDestroy_v2")(gone), 0);
  }

  static constexpr const char* creators[] = {"cublasCreate_v2", "cublasLtCreate"};
  const float one = 1;
  const float zero = 0;
  float sum = 0;
  unsigned long long numbers = 0;
  unsigned long long result = 0;
};

TEST_F(BlasDriver, that_gives_no_context_gives_no_handle) {
  for (const char* function : creators) {
    for (const char* name : {"cuInit", "cuCtxGetCurrent", "cuDeviceGet", "cuDevicePrimaryCtxRetain",
                             "cuCtxSetCurrent"}) {
      fail(name, 801);
      EXPECT_EQ(create(function), blas_not_initialized) << name;
    }
    fail("", 0);
    EXPECT_EQ(create(function), blas_success);
  }
}

TEST_F(BlasDriver, of_a_card_that_is_too_old_gives_no_handle) {
  fake::FakeConfig config = fake::small_gpu();
  for (const char* function : creators) {
    config.capability_major = 7;
    test::configure(config);
    EXPECT_EQ(create(function), blas_arch_mismatch);
    config.capability_major = 8;
    test::configure(config);
    EXPECT_EQ(create(function), blas_success);
    for (const char* name : {"cuCtxGetDevice", "cuDeviceGetAttribute"}) {
      fail(name, 802);
      EXPECT_EQ(create(function), blas_arch_mismatch) << "nothing is known of the card";
    }
    fail("", 0);
  }
}

TEST_F(BlasDriver, without_memory_gives_no_handle_and_no_sums) {
  CuStream const other = stream();
  ASSERT_EQ(call("cublasSetStream_v2", handle, other), blas_success);
  fail("cuMemAlloc_v2", 2);
  EXPECT_EQ(create("cublasCreate_v2"), blas_alloc_failed);
  EXPECT_EQ(dot(), blas_alloc_failed);
  EXPECT_EQ(norm(), blas_alloc_failed);
  fail("", 0);
  EXPECT_EQ(dot(), blas_success) << "once there is memory";
  EXPECT_EQ(sum, 30);
  destroy(other);
}

TEST_F(BlasDriver, without_a_context_runs_nothing) {
  const auto expect_none = [&] {
    EXPECT_EQ(gemm(), blas_not_initialized);
    EXPECT_EQ(gemv(), blas_not_initialized);
    EXPECT_EQ(axpy(), blas_not_initialized);
    EXPECT_EQ(dot(), blas_not_initialized);
  };
  fail("cuCtxGetCurrent", 803);
  expect_none();
  fail("cuDeviceGet", 803);
  std::thread(expect_none).join();
}

// Each text is said once in a process, so each refusal has another number here.
TEST_F(BlasDriver, is_heard_where_it_refuses_and_asked_again_later) {
  using Call = BlasCode (BlasDriver::*)();
  struct Case {
    Call run;
    const char* fails;
    int code;
    int passes;
    const char* what;
  };
  const Call products = &BlasDriver::gemm;
  const Call tiles = &BlasDriver::gemm_of_halves;
  for (const Case& one_of : {Case{products, "cuModuleLoadData", 901, 0, "to load the kernels of "},
                             Case{products, "cuModuleGetFunction", 902, 0, "demarc_f32_few_4"},
                             Case{tiles, "cuFuncSetAttribute", 903, 0, "the shared memory of a pr"},
                             Case{products, "cuLaunchKernel", 904, 0, "demarc_f32_few_4"},
                             Case{&BlasDriver::gemv, "cuLaunchKernel", 905, 0, "demarc_gemv_n_s"},
                             Case{&BlasDriver::axpy, "cuLaunchKernel", 906, 0, "demarc_axpy_s"},
                             Case{&BlasDriver::dot, "cuLaunchKernel", 907, 0, "demarc_dot_s"},
                             Case{&BlasDriver::dot, "cuLaunchKernel", 908, 1, "demarc_dot_end_s"},
                             Case{&BlasDriver::norm, "cuLaunchKernel", 909, 1, "demarc_nrm2_end_s"},
                             Case{&BlasDriver::dot, "cuMemcpyDtoHAsync_v2", 910, 0, "a copy"},
                             Case{&BlasDriver::dot, "cuStreamSynchronize", 911, 0, "a copy"}}) {
    ++driver->context_id;  // a context in which nothing is loaded
    fail(one_of.fails, one_of.code, one_of.passes);
    testing::internal::CaptureStderr();
    EXPECT_EQ((this->*one_of.run)(), blas_execution_failed) << one_of.fails;
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_THAT(said,
                testing::StartsWith(std::string("demarc: libdemarc_blas.so: the driver refuses ") +
                                    one_of.what));
    EXPECT_THAT(said, HasSubstr("(error " + std::to_string(one_of.code) + ")\n"));
    EXPECT_EQ(driver->capture_mode, 0) << "the thread's own is back";
    fail("", 0);
    EXPECT_EQ((this->*one_of.run)(), blas_success) << one_of.fails;
  }
}

TEST_F(BlasDriver, that_refuses_the_last_batches_of_a_product_is_heard) {
  driver->runs = false;
  fail("cuLaunchKernel", 912, 1);
  EXPECT_EQ(call("cublasSgemmStridedBatched", handle, 0, 0, 1, 1, 1, &one, numbers, 1, 0LL, numbers,
                 1, 0LL, &zero, result, 1, 0LL, 65536),
            blas_execution_failed);
}

TEST_F(BlasDriver, loads_a_module_and_finds_a_kernel_once_for_each_context) {
  driver->context_id = 200;
  EXPECT_EQ(gemm(), blas_success);
  EXPECT_EQ(gemm(), blas_success);
  EXPECT_EQ(driver->modules, 1U);
  EXPECT_THAT(driver->kernels, ElementsAre("demarc_f32_few_4"));
  EXPECT_EQ(gemv(), blas_success);
  EXPECT_EQ(axpy(), blas_success);
  EXPECT_EQ(driver->modules, 2U);
  EXPECT_THAT(driver->kernels, ElementsAre("demarc_f32_few_4", "demarc_gemv_n_s", "demarc_axpy_s"));
  driver->context_id = 201;
  EXPECT_EQ(gemm(), blas_success);
  EXPECT_EQ(driver->modules, 3U) << "another context at the same address";
  int other = 0;
  driver->context = &other;
  EXPECT_EQ(gemm(), blas_success);
  EXPECT_EQ(driver->modules, 4U);
}

TEST_F(BlasDriver, is_asked_for_modules_and_memory_as_it_may_be_during_a_capture) {
  driver->context_id = 300;
  CuStream const other = stream();
  ASSERT_EQ(call("cublasSetStream_v2", handle, other), blas_success);
  EXPECT_EQ(gemm(), blas_success);
  EXPECT_EQ(dot(), blas_success);
  EXPECT_GT(driver->modules, 0U);
  EXPECT_THAT(driver->unrelaxed, IsEmpty());
  EXPECT_EQ(driver->capture_mode, 0) << "the thread's own is back";
  destroy(other);
}

TEST_F(BlasDriver, gets_back_what_a_handle_had) {
  ASSERT_EQ(dot(), blas_success);  // its module stays
  CuStream const other = stream();
  const std::int64_t before = objects_alive();
  BlasHandle const first = handle;
  ASSERT_EQ(call("cublasCreate_v2", &handle), blas_success);
  EXPECT_EQ(objects_alive(), before + 1);
  EXPECT_EQ(dot(), blas_success);
  EXPECT_EQ(objects_alive(), before + 1) << "what the default stream needs is there";
  ASSERT_EQ(call("cublasSetStream_v2", handle, other), blas_success);
  EXPECT_EQ(dot(), blas_success);
  EXPECT_EQ(dot(), blas_success);
  EXPECT_EQ(objects_alive(), before + 2);
  EXPECT_EQ(call("cublasDestroy_v2", handle), blas_success);
  EXPECT_EQ(objects_alive(), before);
  handle = first;
  destroy(other);
}

std::vector<blas::VectorArguments> sums;

// Sums of two streams run at the same time.
TEST_F(BlasDriver, keeps_sums_of_each_stream_and_context_in_memory_of_their_own) {
  CuStream const other = stream();
  sums.clear();
  driver->launched = [](const fake::WatchedLaunch& launch) {
    sums.push_back(*static_cast<const blas::VectorArguments*>(launch.arguments));
  };
  const auto parts_of_dot = [&] {
    sums.clear();
    EXPECT_EQ(dot(), blas_success);
    EXPECT_EQ(sums.size(), 2U);
    EXPECT_EQ(sums.front().parts, sums.back().parts);
    EXPECT_EQ(sums.back().parts, sums.back().result + 16) << "behind the result";
    return sums.back().parts;
  };
  std::set<unsigned long long> places;
  int context = 0;
  for (void* const current : {static_cast<void*>(nullptr), static_cast<void*>(&context)}) {
    driver->context = current;
    for (CuStream const of : {static_cast<CuStream>(nullptr), other}) {
      ASSERT_EQ(call("cublasSetStream_v2", handle, of), blas_success);
      const auto place = parts_of_dot();
      EXPECT_EQ(parts_of_dot(), place) << "sums of one stream follow each other";
      for (const auto taken : places) {
        EXPECT_GE(taken < place ? place - taken : taken - place, 16U * 65);
      }
      places.insert(place);
    }
  }
  EXPECT_EQ(places.size(), 4U);
  destroy(other);
}

}  // namespace
}  // namespace demarc::cuda
