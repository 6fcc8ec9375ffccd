// The table of the driver's errors (CUresult): numbers as in cuda.h of CUDA 13.0.
#include "demarc/driver/driver_errors.hpp"

#include <algorithm>
#include <iterator>

namespace demarc::cuda {
namespace {

struct Row {
  CuResult code;
  ErrorKind kind;
};

constexpr ErrorKind wrong = ErrorKind::invalid_input;
constexpr ErrorKind lacks = ErrorKind::missing_capability;

// What is not in it failed: faults of the card, of a kernel and of MPS, and what is not known yet.
// clang-format off
constexpr Row error_rows[] = {
    {1, wrong},     // invalid value
    {2, lacks},     // out of memory
    {34, lacks},    // a stub library stands where the driver should
    {36, lacks},    // the call needs a newer driver
    {46, lacks},    // the device is in use or prohibited
    {100, lacks},   // no device
    {101, lacks},   // no such device
    {102, lacks},   // the device is not licensed
    {200, wrong},   // invalid image of a module
    {209, lacks},   // no code for this GPU
    {218, wrong},   // invalid PTX
    {221, lacks},   // no PTX compiler
    {222, lacks},   // PTX of a newer version
    {223, lacks},   // PTX compilation is switched off
    {224, lacks},   // unsupported execution affinity
    {225, lacks},   // unsupported device-side synchronisation
    {500, wrong},   // named symbol not found
    {701, lacks},   // out of launch resources
    {720, lacks},   // a cooperative launch that does not fit
    {800, lacks},   // not permitted
    {801, lacks},   // not supported
    {802, lacks},   // the system is not ready
    {803, lacks},   // driver and kernel module do not fit
    {804, lacks},   // no forward compatibility on this device
    {811, lacks},   // no dynamic parallelism
    {812, lacks},   // dynamic parallelism of another version
    {912, wrong},   // a cluster that no GPC can host
    {914, lacks},   // SMs cannot be divided so: configuration
    {915, lacks},   // SMs cannot be divided so: type
};
// clang-format on

struct ContextEnd {
  CuResult code;
  const char* why;
};

constexpr ContextEnd context_ends[] = {
    {214, "an ECC error that could not be corrected"},
    {220, "an NVLink error that could not be corrected"},
    {226, "an error of the memory, which was contained"},
    {700, "a kernel's access to an illegal address"},
    {702, "a kernel that ran for too long"},
    {710, "an assertion in a kernel"},
    {714, "an error of a kernel's stack"},
    {715, "an illegal instruction"},
    {716, "a kernel's access to a misaligned address"},
    {717, "a kernel's access to a wrong address space"},
    {718, "an invalid program counter"},
    {719, "a launch that failed"},
    {721, "tensor memory that was not freed"},
    {806, "a server of MPS that does not answer"},
    {810, "the end of this client of MPS"},
    {911, "an error of a device outside of CUDA"},
};

}  // namespace

ErrorKind kind_of(CuResult code) {
  const auto* row = std::find_if(std::begin(error_rows), std::end(error_rows),
                                 [code](const Row& known) { return known.code == code; });
  return row == std::end(error_rows) ? ErrorKind::check_failed : row->kind;
}

const char* end_of_context(CuResult code) {
  const auto* row = std::find_if(std::begin(context_ends), std::end(context_ends),
                                 [code](const ContextEnd& known) { return known.code == code; });
  return row == std::end(context_ends) ? nullptr : row->why;
}

}  // namespace demarc::cuda
