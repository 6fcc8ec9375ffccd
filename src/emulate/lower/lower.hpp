// From the IR of a kernel and everything it calls to a Program: register slots resolved, immediates
// in uniform slots, branches with their reconvergence points. Instructions that are not covered are
// collected as errors.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/ptx/cfg.hpp"
#include "demarc/ptx/ir.hpp"
#include "lanes/functions.hpp"
#include "lower/uniform.hpp"
#include "machine.hpp"

namespace demarc::emulate {

struct BulkDetails;
enum class AtomicType : std::uint8_t;

// What a symbol of the module means, the same for all kernels of a launch.
struct ModuleMemory {
  std::map<const ptx::Variable*, std::uint64_t> global_address;
  std::map<const ptx::Variable*, std::uint64_t> constant_offset;
  std::vector<std::vector<std::byte>> storage;  // of the global variables
  std::vector<Region> regions;
  std::vector<std::byte> constants;
  std::unique_ptr<DeviceHeap> heap;  // made when a kernel first needs it, kept for the launch
};

// Addresses of global variables: those of global_variable_addresses(), or where they lie on the
// host.
enum class VariablePlaces : std::uint8_t { own, host };

[[nodiscard]] Result<ModuleMemory> place_module_memory(const ptx::Module& module,
                                                       const std::string& source,
                                                       VariablePlaces places);

inline constexpr std::string_view no_clusters =
    "an instruction for clusters of blocks, which the emulator does not cover";

struct LowerRequest {
  const ptx::Module* module = nullptr;
  const ptx::Function* kernel = nullptr;
  const ModuleMemory* memory = nullptr;
  std::vector<std::byte> parameters;  // as in memory, in declaration order with their alignment
  std::vector<std::uint32_t> parameter_offsets;
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint32_t dynamic_shared_bytes = 0;
  std::uint32_t sms = 1;  // %nsmid
  std::string source;     // for messages
  HandlerTables tables;
};

[[nodiscard]] Result<std::unique_ptr<Program>> lower(const LowerRequest& request);

// A resolved operand.
struct Source {
  std::uint32_t slot = 0;
  bool uniform = false;
  std::uint8_t width = 0;  // bytes of the register; 0: predicate
  bool negated = false;
};

// Bytes of a lane that a scalar parameter of a call occupies in a frame.
inline constexpr std::uint32_t call_pitch = 16;

class Lowering {
 public:
  explicit Lowering(const LowerRequest& request);
  [[nodiscard]] Result<std::unique_ptr<Program>> run();

 private:
  struct Register {
    std::uint32_t slot = 0;
    std::uint8_t width = 0;  // bytes; 0: predicate
    bool uniform = false;
  };
  struct Unsupported {
    std::uint32_t line = 0;
    std::string text;
    std::string reason;
  };

  // flow (flow.cpp)
  void lower_function(std::uint32_t index);
  void allocate_registers();
  void lower_block(std::uint32_t block);
  void lower_instruction(std::uint32_t index);
  void begin_run(std::uint32_t instruction);
  void close_run();
  bool lower_control(const ptx::Instruction& instruction);
  void lower_branch(const ptx::Instruction& instruction);
  void lower_call(const ptx::Instruction& instruction);
  void emit_call(const ptx::Instruction& instruction, const ptx::Operand& callee,
                 std::vector<std::uint32_t> arguments, std::vector<std::uint32_t> results);
  void copy_lanes(std::pair<std::uint32_t, std::uint32_t> d, std::uint32_t from,
                  std::uint32_t pitch, bool uniform, std::uint32_t bytes);
  const Register* register_parameter(const ptx::Variable& variable) const;
  void copy_register_parameters();
  void copy_register_results();
  void lower_barrier(const ptx::Instruction& instruction);
  bool lower_device_call(const ptx::Instruction& instruction, std::string_view name,
                         const std::vector<std::uint32_t>& arguments,
                         const std::vector<std::uint32_t>& results);
  std::uint32_t function_index(const ptx::Function& function);
  void finish_function();
  void resolve_targets();
  void place_shared();

  // values (values.cpp)
  std::uint32_t take_slot(std::uint32_t bytes, std::uint32_t alignment);
  std::uint32_t constant_slot(std::uint64_t value);
  Source source(const ptx::Operand& operand, ptx::Type type);
  Source special_source(const ptx::Operand& operand);
  Source symbol_source(const ptx::Operand& operand);
  Register destination(const ptx::Operand& operand);
  Source vector_copy(const Source& from, unsigned width);
  MicroOp& emit(Handler handler);
  void emit_alu(Alu alu, const Register& d, std::initializer_list<Source> sources);
  LaneDetails& emit_lanes(LaneFunction function, const Register& d,
                          std::initializer_list<Source> sources);
  template <class T>
  T& details() {
    auto made = std::make_shared<T>();
    T& reference = *made;
    program_->details.push_back(std::move(made));
    return reference;
  }
  void unsupported(const ptx::Instruction& instruction, std::string reason);
  // False, and an error of the run, when `bytes` in all, with `variable`, are more than `most`.
  bool fits(const ptx::Variable& variable, std::uint64_t bytes, std::uint64_t most,
            std::string_view memory);
  void note_approximation(const ptx::Instruction& instruction);  // approximations.cpp

  // instructions (arithmetic.cpp, data.cpp, memory.cpp, warp.cpp)
  bool lower_arithmetic(const ptx::Instruction& instruction);
  bool lower_integer(const ptx::Instruction& instruction);
  bool lower_float(const ptx::Instruction& instruction);
  bool lower_bits(const ptx::Instruction& instruction);
  bool lower_video(const ptx::Instruction& instruction);
  bool lower_video_parts(const ptx::Instruction& instruction);
  bool lower_compare(const ptx::Instruction& instruction);
  bool lower_move(const ptx::Instruction& instruction);
  bool lower_wide_move(const ptx::Instruction& instruction);
  bool lower_convert(const ptx::Instruction& instruction);
  bool lower_logic(const ptx::Instruction& instruction);
  bool lower_memory(const ptx::Instruction& instruction);
  bool lower_load(const ptx::Instruction& instruction);
  bool lower_store(const ptx::Instruction& instruction);
  bool lower_atomic(const ptx::Instruction& instruction);
  bool lower_wide_access(const ptx::Instruction& instruction, const ptx::Operand& place,
                         const ptx::Operand& value, bool loads);
  bool lower_async(const ptx::Instruction& instruction);
  bool lower_bulk_copy(const ptx::Instruction& instruction);
  static bool bulk_reduction(const ptx::Mnemonic& words, BulkDetails& made);
  bool lower_mbarrier(const ptx::Instruction& instruction);
  bool lower_warp(const ptx::Instruction& instruction);
  bool lower_matrix(const ptx::Instruction& instruction);
  bool lower_product(const ptx::Instruction& instruction);
  bool lower_fragment(const ptx::Instruction& instruction);
  bool fragment_registers(const ptx::Operand& operand, std::uint32_t* slots, bool* uniform,
                          unsigned expected, ptx::Type type);
  bool address(const ptx::Operand& operand, ptx::StateSpace space, MicroOp& op);
  void note_access(AccessKind kind, std::uint32_t bytes, AddressKind place);

  [[nodiscard]] const ptx::Mnemonic& mnemonic(const ptx::Instruction& instruction) const {
    return request_.module->mnemonic(instruction);
  }
  [[nodiscard]] bool has(const ptx::Instruction& instruction, std::string_view modifier) const;
  [[nodiscard]] std::span<const ptx::Operand> operands(const ptx::Instruction& instruction) const {
    return body_->operands_of(instruction);
  }

  const LowerRequest& request_;
  std::unique_ptr<Program> program_;
  std::vector<Unsupported> unsupported_;
  std::map<const ptx::Variable*, std::uint32_t> shared_offset_;
  std::vector<const ptx::Function*> queue_;  // by function index

  // Of the function being lowered.
  const ptx::Function* function_ = nullptr;
  std::uint32_t function_index_ = 0;
  const ptx::Body* body_ = nullptr;
  const ptx::Cfg* cfg_ = nullptr;
  std::vector<Register> registers_;
  std::map<std::uint64_t, std::uint32_t> constants_;
  std::map<const ptx::Variable*, FrameVariable> frame_variables_;
  std::map<const ptx::Variable*, std::uint32_t> local_offset_;
  std::uint32_t frame_used_ = 0;
  bool frame_full_ = false;
  std::uint32_t instruction_ = 0;  // program-wide index of the one being lowered
  std::uint32_t first_instruction_ = 0;
  std::size_t header_ = 0;  // micro-op of the open run; 0: none
  std::uint32_t run_count_ = 0;
  bool failed_ = false;
  std::vector<std::uint32_t> block_start_;  // micro-op index by basic block
  std::vector<bool> joins_;                 // basic blocks where lanes reconverge
  struct Fixup {
    std::size_t op = 0;
    std::uint32_t target_block = ptx::no_index;  // sets target
    std::uint32_t join_block = ptx::no_index;    // sets join
  };
  std::vector<Fixup> fixups_;
  std::vector<std::pair<std::vector<std::uint32_t>*, std::vector<std::uint32_t>>>
      lists_;  // of block numbers
};

[[nodiscard]] LaneType lane_type(ptx::Type type);
[[nodiscard]] std::optional<AtomicType> atomic_type(ptx::Type type);

}  // namespace demarc::emulate
