// The table of the driver's errors (CUresult): numbers as in cuda.h of CUDA 13.0.
#include "driver/driver_errors.hpp"

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
constexpr ErrorKind failed = ErrorKind::check_failed;

// clang-format off
constexpr Row rows[] = {
    {1, wrong},     // invalid value
    {2, lacks},     // out of memory
    {3, failed},    // not initialised
    {4, failed},    // the driver is shutting down
    {34, lacks},    // a stub library stands where the driver should
    {36, lacks},    // the call needs a newer driver
    {46, lacks},    // the device is in use or prohibited
    {100, lacks},   // no device
    {101, lacks},   // no such device
    {102, lacks},   // the device is not licensed
    {200, wrong},   // invalid image of a module
    {209, lacks},   // no code for this GPU
    {214, failed},  // uncorrectable ECC error
    {218, wrong},   // invalid PTX
    {220, failed},  // uncorrectable NVLink error
    {221, lacks},   // no PTX compiler
    {222, lacks},   // PTX of a newer version
    {223, lacks},   // PTX compilation is switched off
    {224, lacks},   // unsupported execution affinity
    {225, lacks},   // unsupported device-side synchronisation
    {226, failed},  // contained memory error
    {500, wrong},   // named symbol not found
    {700, failed},  // illegal address
    {701, lacks},   // out of launch resources
    {702, failed},  // launch timed out
    {709, failed},  // the context was destroyed
    {710, failed},  // assertion in a kernel
    {714, failed},  // error of the hardware stack
    {715, failed},  // illegal instruction
    {716, failed},  // misaligned address
    {717, failed},  // invalid address space
    {718, failed},  // invalid program counter
    {719, failed},  // launch failed
    {720, lacks},   // a cooperative launch that does not fit
    {721, failed},  // tensor memory was not given back
    {800, lacks},   // not permitted
    {801, lacks},   // not supported
    {802, lacks},   // the system is not ready
    {803, lacks},   // driver and kernel module do not fit
    {804, lacks},   // no forward compatibility on this device
    {805, failed},  // no connection to MPS
    {806, failed},  // MPS: a call failed
    {807, failed},  // MPS: the server is not ready
    {808, failed},  // MPS: too many clients
    {809, failed},  // MPS: too many connections
    {810, failed},  // MPS: the server ended this client
    {811, lacks},   // no dynamic parallelism
    {812, lacks},   // dynamic parallelism of another version
    {909, failed},  // timed out
    {912, wrong},   // a cluster that no GPC can host
    {914, lacks},   // SMs cannot be divided so: configuration
    {915, lacks},   // SMs cannot be divided so: type
    {999, failed},  // unknown
};
// clang-format on

static_assert(std::is_sorted(std::begin(rows), std::end(rows),
                             [](const Row& a, const Row& b) { return a.code < b.code; }));

}  // namespace

ErrorKind kind_of(CuResult code) {
  const auto* row = std::find_if(std::begin(rows), std::end(rows),
                                 [code](const Row& known) { return known.code == code; });
  return row == std::end(rows) ? failed : row->kind;
}

}  // namespace demarc::cuda
