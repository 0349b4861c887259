// The parts of the sandbox. Private to CSandbox.

#pragma once

#include <stdbool.h>

/// Restricts the calling thread, and those that it creates, to the system calls that codecs need. Returns false if that
/// failed or if this build has no filter.
bool csandbox_filter_install(void);

/// Makes a crash at the memory limit an exit with CSANDBOX_EXIT_NO_MEMORY. Call it before the filter is installed.
void csandbox_watch_exhaustion(void);

/// Returns whether the zygote, and with it this helper, has namespaces of its own.
bool csandbox_has_namespaces(void);
