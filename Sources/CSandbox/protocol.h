// Messages between the server and the zygote. Private to CSandbox.

#pragma once

#include <stdint.h>

/// A request to the zygote. To fork a helper takes three messages, one for each descriptor: its socket, its socket for
/// files, its memory.
typedef struct csandbox_command {
  uint32_t kind; ///< csandbox_command_kind
  uint32_t id;
} csandbox_command;

enum csandbox_command_kind {
  CSANDBOX_GIVE_SOCKET = 1,
  CSANDBOX_GIVE_FILES = 2,
  CSANDBOX_GIVE_MEMORY_AND_FORK = 3,
  CSANDBOX_DISCARD = 4,
};
