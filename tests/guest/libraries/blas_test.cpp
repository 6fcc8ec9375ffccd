// What libdemarc_blas.so exports, what its handles are set to, and what it refuses.
#include "blas.hpp"

#include <fstream>
#include <set>

#include "demarc/base/files.hpp"
#include "demarc/ptx/colored.hpp"
#include "demarc/ptx/parser.hpp"
#include "not_run.hpp"
#include "program.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* headers = "/usr/local/cuda/include";

std::vector<std::string> public_names() {
  std::ifstream file(test::source_dir() / "tests/guest/libraries/cublas_names.txt");
  std::vector<std::string> names;
  for (std::string line; std::getline(file, line);) names.push_back(line);
  return names;
}

// Those that take no handle and run no kernel stay NVIDIA's.
bool stays_nvidias(const std::string& name) {
  static const std::set<std::string> others{
      "cublasXerbla",          "cublasSetLoggerCallback", "cublasGetLoggerCallback",
      "cublasLoggerConfigure", "cublasLtGetVersion",      "cublasLtDisableCpuInstructionsSetMask"};
  if (others.contains(name)) return true;
  for (const char* start : {"cublasSetVector", "cublasGetVector", "cublasSetMatrix",
                            "cublasGetMatrix", "cublasGetCudartVersion", "cublasGetProperty",
                            "cublasGetStatus", "cublasLtGetCudartVersion", "cublasLtGetProperty",
                            "cublasLtGetStatus", "cublasLtLogger", "cublasLtHeuristicsCache"}) {
    if (name.starts_with(start)) return true;
  }
  return false;
}

class BlasLibrary : public Blas {};

// A program that has none goes on: another process shows it.
TEST_F(BlasLibrary, refuses_null_for_handles_numbers_and_places) {
  EXPECT_EXIT(
      {
        const BlasHandle none = nullptr;
        const float one = 1;
        float sum = 0;
        int value = 0;
        const auto is = [](BlasCode wanted, std::initializer_list<BlasCode> codes) {
          for (const BlasCode code : codes) DEMAND(code == wanted);
        };
        is(blas_not_initialized,
           {call("cublasDestroy_v2", none), call("cublasLtDestroy", none),
            call("cublasSetStream_v2", none, nullptr), call("cublasSetPointerMode_v2", none, 0),
            call("cublasSetAtomicsMode", none, 0), call("cublasSetMathMode", none, 0),
            call("cublasSetSmCountTarget", none, 0), call("cublasGetMathMode", none, &value),
            call("cublasGetStream_v2", none, &value),
            call("cublasSgemm_v2", none, 0, 0, 1, 1, 1, &one, &one, 1, &one, 1, &one, &one, 1),
            call("cublasSgemmEx", none, 0, 0, 1, 1, 1, &one, &one, 0, 1, &one, 0, 1, &one, &one, 0,
                 1),
            call("cublasSgemv_v2", none, 0, 1, 1, &one, &one, 1, &one, 1, &one, &one, 1),
            call("cublasSscal_v2", none, 1, &one, &one, 1),
            call("cublasScopy_v2", none, 1, &one, 1, &one, 1),
            call("cublasSnrm2_v2", none, 1, &one, 1, &one)});
        is(blas_invalid_value,
           {call("cublasCreate_v2", none), call("cublasLtCreate", none),
            call("cublasGetVersion_v2", none, nullptr), call("cublasGetStream_v2", handle, nullptr),
            call("cublasSgemm_v2", handle, 0, 0, 1, 1, 1, nullptr, &one, 1, &one, 1, &one, &sum, 1),
            call("cublasSgemm_v2", handle, 0, 0, 1, 1, 1, &one, &one, 1, &one, 1, nullptr, &sum, 1),
            call("cublasSgemv_v2", handle, 0, 1, 1, nullptr, &one, 1, &one, 1, &one, &sum, 1),
            call("cublasSgemv_v2", handle, 0, 1, 1, &one, &one, 1, &one, 1, nullptr, &sum, 1),
            call("cublasSscal_v2", handle, 1, nullptr, &sum, 1),
            call("cublasSnrm2_v2", handle, 1, &one, 1, nullptr)});
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(BlasLibrary, has_every_public_function_that_takes_a_handle) {
  const auto names = public_names();
  ASSERT_GT(names.size(), 500U);
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    if (!stays_nvidias(name) && ::dlsym(blas, name.c_str()) == nullptr) missing.push_back(name);
    EXPECT_FALSE(stays_nvidias(name) && ::dlsym(blas, name.c_str()) != nullptr) << name;
  }
  EXPECT_THAT(missing, IsEmpty());
}

TEST(BlasNames, are_those_of_the_headers) {
  if (!std::filesystem::exists(std::filesystem::path(headers) / "cublasLt.h")) {
    DEMARC_NOT_RUN("no headers of cuBLAS");
  }
  const auto listed = test::run_program(
      {"python3", (test::source_dir() / "tools/list-cublas-names.py").string(), headers});
  ASSERT_EQ(listed.exit_code, 0) << listed.err;
  std::string kept;
  for (const std::string& name : public_names()) kept += name + "\n";
  EXPECT_EQ(listed.out, kept);
}

TEST_F(BlasLibrary, refuses_what_it_lacks_by_name_once) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(call("cublasStrsm_v2", handle), blas_not_supported);
  EXPECT_EQ(call("cublasStrsm_v2", handle), blas_not_supported);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, testing::StartsWith(
                        "demarc: cublasStrsm_v2 was refused, because libdemarc_blas.so lacks this "
                        "function. This program runs in a tenant on a card where machine code "));
  EXPECT_THAT(said, HasSubstr("demarc exec --sms 50%\n"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
}

TEST_F(BlasLibrary, keeps_what_a_handle_is_set_to) {
  void* stream = nullptr;
  EXPECT_EQ(call("cublasSetStream_v2", handle, &stream), blas_success);
  void* got = nullptr;
  EXPECT_EQ(call("cublasGetStream_v2", handle, &got), blas_success);
  EXPECT_EQ(got, &stream);
  struct Setting {
    const char* set;
    const char* get;
    int value;
    int wrong;
    BlasCode code;
  };
  for (const Setting& setting :
       {Setting{"cublasSetPointerMode_v2", "cublasGetPointerMode_v2", 1, 2, blas_invalid_value},
        Setting{"cublasSetAtomicsMode", "cublasGetAtomicsMode", 1, 2, blas_invalid_value},
        Setting{"cublasSetMathMode", "cublasGetMathMode", 16 + 3, 4, blas_not_supported},
        Setting{"cublasSetMathMode", "cublasGetMathMode", 2, 16 + 8, blas_not_supported},
        Setting{"cublasSetSmCountTarget", "cublasGetSmCountTarget", 12, -1, blas_invalid_value}}) {
    EXPECT_EQ(call(setting.set, handle, setting.value), blas_success) << setting.set;
    EXPECT_EQ(call(setting.set, handle, setting.wrong), setting.code) << setting.set;
    int value = -1;
    EXPECT_EQ(call(setting.get, handle, &value), blas_success);
    EXPECT_EQ(value, setting.value) << setting.get;
    EXPECT_EQ(call(setting.get, handle, nullptr), blas_invalid_value);
    const BlasHandle none = nullptr;
    EXPECT_EQ(call(setting.set, none, setting.value), blas_not_initialized) << setting.set;
    EXPECT_EQ(call(setting.get, none, &value), blas_not_initialized) << setting.get;
  }
  EXPECT_EQ(call("cublasSetMathMode", handle, -1), blas_not_supported);
  for (const char* set : {"cublasSetPointerMode_v2", "cublasSetAtomicsMode", "cublasSetMathMode",
                          "cublasSetSmCountTarget"}) {
    EXPECT_EQ(call(set, handle, 0), blas_success) << set;
  }
  EXPECT_EQ(call("cublasSetWorkspace_v2", handle, nullptr, std::size_t{0}), blas_success);
  int version = 0;
  EXPECT_EQ(call("cublasGetVersion_v2", handle, &version), blas_success);
  EXPECT_EQ(version, 130000) << "no library of NVIDIA's is there";
  EXPECT_EQ(call("cublasGetVersion_v2", handle, nullptr), blas_invalid_value);
}

TEST(BlasVersion, is_that_of_a_library_that_the_program_opened) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const auto folder = test::fresh_folder("cublas");
        const auto theirs = folder / "libcublas.so.12";
        std::filesystem::copy_file(test::build_dir() / "libdemarc_fake_compilers.so", theirs);
        void* const blas = library("libdemarc_blas.so");
        auto* const get = symbol<BlasCode(BlasHandle, int*)>(blas, "cublasGetVersion_v2");
        int version = 0;
        DEMAND(get(nullptr, &version) == blas_success && version == 130000);
        DEMAND(::dlopen(theirs.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr);
        DEMAND(get(nullptr, &version) == blas_success && version == 120405);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(BlasVersion, is_that_of_the_library_that_the_program_is_linked_with) {
  const auto said = test::run_program(
      {"/usr/bin/env", "LD_PRELOAD=" + (test::build_dir() / "libdemarc_blas.so").string(),
       (test::build_dir() / "demarc_compilers_subject").string(), "version"});
  EXPECT_EQ(said.out, "version 120405\n") << said.err;
}

TEST_F(BlasLibrary, knows_its_handles) {
  std::uint64_t other[8] = {};
  const BlasHandle foreign = other;
  const BlasHandle none = nullptr;
  const float one = 1;
  for (const BlasHandle handle_of_none : {foreign, none}) {
    EXPECT_EQ(call("cublasDestroy_v2", handle_of_none), blas_not_initialized);
    EXPECT_EQ(call("cublasSetStream_v2", handle_of_none, nullptr), blas_not_initialized);
    EXPECT_EQ(call("cublasSetWorkspace_v2", handle_of_none, nullptr, std::size_t{0}),
              blas_not_initialized);
    EXPECT_EQ(call("cublasSgemm_v2", handle_of_none, 0, 0, 1, 1, 1, &one, &one, 1, &one, 1, &one,
                   &one, 1),
              blas_not_initialized);
    EXPECT_EQ(call("cublasSgemmEx", handle_of_none, 0, 0, 1, 1, 1, &one, &one, 0, 1, &one, 0, 1,
                   &one, &one, 0, 1),
              blas_not_initialized);
    EXPECT_EQ(
        call("cublasSgemv_v2", handle_of_none, 0, 1, 1, &one, &one, 1, &one, 1, &one, &one, 1),
        blas_not_initialized);
    EXPECT_EQ(call("cublasSscal_v2", handle_of_none, 1, &one, &one, 1), blas_not_initialized);
    EXPECT_EQ(call("cublasScopy_v2", handle_of_none, 1, &one, 1, &one, 1), blas_not_initialized);
    EXPECT_EQ(call("cublasSnrm2_v2", handle_of_none, 1, &one, 1, &one), blas_not_initialized);
    EXPECT_EQ(call("cublasLtDestroy", handle_of_none), blas_not_initialized);
  }
  EXPECT_EQ(call("cublasCreate_v2", nullptr), blas_invalid_value);
  EXPECT_EQ(call("cublasLtCreate", nullptr), blas_invalid_value);
}

TEST_F(BlasLibrary, refuses_functions_that_no_header_names) {
  auto* const find = symbol<void*(const char*)>(blas, "demarc_blas_function");
  EXPECT_EQ(find("cublasSgemm_v2"), ::dlsym(blas, "cublasSgemm_v2"));
  EXPECT_EQ(find("malloc"), find("cublasLtHiddenMatmul")) << "of another library";
  testing::internal::CaptureStderr();
  EXPECT_EQ(reinterpret_cast<BlasCode (*)()>(find("cublasLtHiddenMatmul"))(), blas_not_supported);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("a function of cuBLAS that no header names was refused"));
  for (const char* name :
       {"cublasLtGetVersion", "cublasGetStatusString", "cublasSetMatrixAsync_64"}) {
    EXPECT_EQ(find(name), nullptr) << name << " takes no handle and stays NVIDIA's";
  }
  for (const char* name :
       {"cublasSetEnvironmentMode", "cublasLtGetEnvironmentMode", "cublasSbdmm"}) {
    EXPECT_EQ(call(name), blas_not_supported) << name;
  }
}

TEST_F(BlasLibrary, has_no_pedantic_products_of_16_bits) {
  const float one = 1;
  const auto at = on_card(std::vector<std::byte>(16));
  const auto ran = [&](int inputs, int out, int compute) {
    return call("cublasGemmEx", handle, 0, 0, 1, 1, 1, &one, at, inputs, 1, at, inputs, 1, &one, at,
                out, 1, compute, -1);
  };
  for (const int inputs : {int{type_f16}, int{type_bf16}}) {
    EXPECT_EQ(ran(inputs, type_f32, 69), blas_not_supported);
    EXPECT_EQ(ran(inputs, type_f32, 68), blas_success);
    ASSERT_EQ(call("cublasSetMathMode", handle, 2), blas_success);
    EXPECT_EQ(ran(inputs, type_f32, 68), blas_not_supported);
    ASSERT_EQ(call("cublasSetMathMode", handle, 0), blas_success);
  }
  EXPECT_EQ(ran(type_f16, type_f16, 65), blas_not_supported);
  ASSERT_EQ(call("cublasSetMathMode", handle, 2), blas_success);
  EXPECT_EQ(ran(type_f32, type_f32, 68), blas_success);
  EXPECT_EQ(ran(type_f32, type_f32, 69), blas_success);
}

TEST_F(BlasLibrary, reads_and_writes_nothing_at_address_zero) {
  const float one = 1;
  const float zero = 0;
  const auto at = on_card(std::vector<std::byte>(16));
  const unsigned long long none = 0;
  const auto ran = [&](int k, const float& alpha, unsigned long long a, unsigned long long b,
                       const float& beta, unsigned long long c) {
    return call("cublasSgemm_v2", handle, 0, 0, 1, 1, k, &alpha, a, 1, b, 1, &beta, c, 1);
  };
  EXPECT_EQ(ran(1, one, none, at, one, at), blas_invalid_value);
  EXPECT_EQ(ran(1, one, at, none, one, at), blas_invalid_value);
  EXPECT_EQ(ran(1, one, at, at, one, none), blas_invalid_value);
  EXPECT_EQ(ran(1, one, at, at, zero, none), blas_invalid_value);
  EXPECT_EQ(ran(1, zero, none, none, one, at), blas_success) << "nothing is multiplied";
  EXPECT_EQ(ran(0, one, none, none, one, at), blas_success) << "nothing is multiplied";
}

TEST_F(BlasLibrary, refuses_combinations_that_it_does_not_compute) {
  const float one = 1;
  const auto ran = [&](int inputs, int other, int out, int compute, int algorithm = -1) {
    return call("cublasGemmEx", handle, 0, 0, 1, 1, 1, &one, nullptr, inputs, 1, nullptr, other, 1,
                &one, nullptr, out, 1, compute, algorithm);
  };
  testing::internal::CaptureStderr();
  EXPECT_EQ(ran(type_f16, type_bf16, type_f16, 68), blas_not_supported);
  EXPECT_EQ(ran(type_bf16, type_bf16, type_f16, 68), blas_not_supported);
  EXPECT_EQ(ran(type_f16, type_f16, type_f32, 64), blas_not_supported);
  EXPECT_EQ(ran(type_f32, type_f32, type_f32, 74), blas_not_supported) << "FAST_16F";
  EXPECT_EQ(ran(type_f32, type_f32, type_f32, 75), blas_not_supported) << "FAST_16BF";
  EXPECT_EQ(ran(type_f64, type_f64, type_f64, 68), blas_not_supported);
  EXPECT_EQ(ran(3, 3, 10, 72), blas_not_supported) << "integers";
  EXPECT_EQ(ran(28, 28, type_f32, 68), blas_not_supported) << "FP8";
  EXPECT_EQ(ran(type_f32, type_f32, type_f32, 99), blas_not_supported);
  EXPECT_EQ(ran(type_f32, type_f32, type_f32, 68, 24), blas_not_supported);
  EXPECT_EQ(ran(type_f32, type_f32, type_f32, 68, 98), blas_not_supported);
  EXPECT_EQ(ran(type_f32, type_f32, type_f32, 68, 116), blas_not_supported);
  EXPECT_EQ(ran(type_f32, type_f32, type_f32, 68, 1000), blas_not_supported);
  EXPECT_EQ(ran(type_f32, type_f32, type_f32, 68, -2), blas_not_supported);
  const std::string said = testing::internal::GetCapturedStderr();
  for (const int algorithm : {-1, 0, 23, 99, 115, 999}) {
    EXPECT_EQ(call("cublasGemmEx", handle, 0, 0, 0, 1, 1, &one, nullptr, 0, 1, nullptr, 0, 1, &one,
                   nullptr, 0, 1, 68, algorithm),
              blas_success);
  }
  EXPECT_THAT(said, HasSubstr("cublasGemmEx was refused, because it is not computed with the "
                              "compute type 74 and the data types 0, 0 and 0 (numbers of "));
  EXPECT_THAT(said, HasSubstr("cublasGemmEx was refused, because it knows no such algorithm. "));
}

TEST_F(BlasLibrary, finds_what_is_wrong_with_sizes_and_operations) {
  const auto number = on_card(as_type({1}, type_f32));
  const float one = 1;
  const auto ran = [&](int ta, int tb, int m, int n, int k, int lda, int ldb, int ldc,
                       const float* alpha, const float* beta) {
    return call("cublasSgemm_v2", handle, ta, tb, m, n, k, alpha, number, lda, number, ldb, beta,
                number, ldc);
  };
  EXPECT_EQ(ran(0, 0, 1, 1, 1, 1, 1, 1, &one, &one), blas_success);
  EXPECT_EQ(ran(2, 2, 1, 1, 1, 1, 1, 1, &one, &one), blas_success) << "C is T for real numbers";
  EXPECT_EQ(ran(3, 0, 1, 1, 1, 1, 1, 1, &one, &one), blas_not_supported);
  EXPECT_EQ(ran(0, -1, 1, 1, 1, 1, 1, 1, &one, &one), blas_not_supported);
  EXPECT_EQ(ran(0, 0, -1, 1, 1, 1, 1, 1, &one, &one), blas_invalid_value);
  EXPECT_EQ(ran(0, 0, 1, -1, 1, 1, 1, 1, &one, &one), blas_invalid_value);
  EXPECT_EQ(ran(0, 0, 1, 1, -1, 1, 1, 1, &one, &one), blas_invalid_value);
  EXPECT_EQ(ran(0, 0, 2, 1, 1, 1, 1, 2, &one, &one), blas_invalid_value) << "lda";
  EXPECT_EQ(ran(1, 0, 1, 1, 2, 1, 2, 1, &one, &one), blas_invalid_value) << "lda";
  EXPECT_EQ(ran(0, 0, 1, 1, 2, 1, 1, 1, &one, &one), blas_invalid_value) << "ldb";
  EXPECT_EQ(ran(0, 1, 1, 2, 1, 1, 1, 1, &one, &one), blas_invalid_value) << "ldb";
  EXPECT_EQ(ran(0, 0, 2, 1, 1, 2, 1, 1, &one, &one), blas_invalid_value) << "ldc";
  EXPECT_EQ(ran(0, 0, 0, 0, 0, 0, 1, 1, &one, &one), blas_invalid_value) << "lda is 1 at least";
  EXPECT_EQ(ran(0, 0, 1, 1, 1, 1, 1, 1, nullptr, &one), blas_invalid_value);
  EXPECT_EQ(ran(0, 0, 1, 1, 1, 1, 1, 1, &one, nullptr), blas_invalid_value);
  using Size = std::int64_t;
  const Size large = Size{1} << 31;
  EXPECT_EQ(call("cublasSgemm_v2_64", handle, 0, 0, large, Size{1}, Size{1}, &one, number, large,
                 number, Size{1}, &one, number, large),
            blas_not_supported);
  EXPECT_EQ(call("cublasSgemmStridedBatched", handle, 0, 0, 1, 1, 1, &one, number, 1, 0LL, number,
                 1, 0LL, &one, number, 1, 0LL, -1),
            blas_invalid_value);
}

// None, and a library that is not a driver.
TEST(BlasWithoutDriver, makes_no_handle) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const std::string& path : {std::string("/nowhere/libcuda.so.1"),
                                  (test::build_dir() / "libdemarc_fake_compilers.so").string()}) {
    EXPECT_EXIT(
        {
          ::setenv("DEMARC_LIBCUDA", path.c_str(), 1);
          void* const blas = library("libdemarc_blas.so");
          BlasHandle handle = nullptr;
          DEMAND(symbol<BlasCode(BlasHandle*)>(blas, "cublasCreate_v2")(&handle) ==
                 blas_not_initialized);
          DEMAND(symbol<BlasCode(BlasHandle*)>(blas, "cublasLtCreate")(&handle) ==
                 blas_not_initialized);
          DEMAND(handle == nullptr);
          std::_Exit(0);
        },
        testing::ExitedWithCode(0), "")
        << path;
  }
}

// The stand-in has no cuCtxGetId and no cuThreadExchangeStreamCaptureMode.
TEST(BlasWithOlderDriver, computes) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
        test::configure(fake::small_gpu());
        void* const blas = library("libdemarc_blas.so");
        BlasHandle handle = nullptr;
        DEMAND(symbol<BlasCode(BlasHandle*)>(blas, "cublasCreate_v2")(&handle) == blas_success);
        unsigned long long at = 0;
        DEMAND(test::fake_symbol<int(unsigned long long*, std::size_t)>("cuMemAlloc_v2")(&at, 4) ==
               0);
        const float three = 3;
        DEMAND(test::fake_symbol<int(unsigned long long, const void*, std::size_t)>(
                   "cuMemcpyHtoD_v2")(at, &three, 4) == 0);
        float sum = 0;
        using Dot =
            BlasCode(BlasHandle, int, unsigned long long, int, unsigned long long, int, float*);
        DEMAND(symbol<Dot>(blas, "cublasSdot_v2")(handle, 1, at, 1, at, 1, &sum) == blas_success);
        DEMAND(sum == 9);
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "");
}

// On a card without windows all other kernels are refused.
TEST(BlasKernels, are_rewritten_and_have_no_local_memory) {
  std::size_t kernels = 0;
  for (const auto& file : std::filesystem::directory_iterator(
           test::source_dir() / "src/guest/libraries/blas/kernels/ptx")) {
    const auto module = ptx::parse_whole(read_file(file.path()).value(), file.path().filename());
    ASSERT_TRUE(module) << module.error().message;
    const auto needs = ptx::find_colored_needs(*module);
    ASSERT_TRUE(needs) << needs.error().message;
    EXPECT_EQ(needs->variables.bytes, 0U) << file.path();
    EXPECT_EQ(needs->local_bytes, 0U) << file.path();
    for (const ptx::ColoredKernel& kernel : needs->kernels) {
      ++kernels;
      EXPECT_TRUE(kernel.accepted()) << kernel.name;
    }
  }
  EXPECT_EQ(kernels, 3U * 12 + 4 + 2 * 9);
}

// The embedded text names an older version of PTX than nvcc writes, which must have what it uses.
TEST(BlasKernels, are_accepted_by_ptxas_as_the_library_has_them) {
  if (!test::program_exists("ptxas")) DEMARC_NOT_RUN("no ptxas");
  const std::string library = read_file(test::build_dir() / "libdemarc_blas.so").value();
  const auto folder = test::fresh_folder("blas_ptx");
  std::size_t modules = 0;
  for (std::size_t at = library.find("\n.version "); at != std::string::npos;
       at = library.find("\n.version ", at + 1)) {
    const std::size_t begin = library.rfind('\0', at) + 1;
    const auto file = folder / "module.ptx";
    ASSERT_TRUE(write_file(file, library.substr(begin, library.find('\0', at) - begin)));
    const auto outcome = test::run_program(
        {"ptxas", "-arch=sm_90", "-O0", file.string(), "-o", (folder / "module.cubin").string()});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err.substr(0, 500);
    ++modules;
  }
  EXPECT_EQ(modules, 11U);
}

}  // namespace
}  // namespace demarc::cuda
