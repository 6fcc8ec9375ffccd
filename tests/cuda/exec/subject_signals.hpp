// What the program of subject.cpp does with signals.
#pragma once

#include <sys/types.h>

#include <string>

namespace subject {

void block_signals();
void take_signal(const std::string& who);
// A child of a session of its own takes a signal as well; both know it before it is sent.
void send_to_parent_and_take(pid_t parent, int signal);
void die_in_child(int signal);
// The signal comes while another thread makes calls of the driver, or waits in one that returns
// once SOCKET.ended is there. Says whether it went on behind that, and takes SOCKET.hold away.
void die_beside_calls(int signal, const std::string& socket, bool long_ones);

}  // namespace subject
